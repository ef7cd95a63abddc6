/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What TCP-radio and TCP-radio-newRTO have in common: a window that no
 * acknowledgement and no loss changes (docs/tcp-variants.md).
 */
#ifndef LINKTRIAL_RADIO_H
#define LINKTRIAL_RADIO_H
#include "congestion.h"

#define HEADERS 40 /* IP and TCP without options */

struct radio {
	u32 window;	 /* segments when there is no mark; 0 before init */
	u32 rto_max_ms;	 /* newRTO: as the socket's owner and the paper have it */
	u32 rto_held_ms; /* newRTO: what the kernel was told last */
};

/* The window is in the socket's mark (SO_MARK), in bytes of IP packets. */
static __always_inline u32 radio_window(struct sock *sk)
{
	struct radio *ca = inet_csk_ca(sk);
	u32 bytes = sk->sk_mark;
	u32 packet = tcp_sk(sk)->mss_cache + HEADERS;
	u32 most = tcp_sk(sk)->snd_cwnd_clamp;
	u32 segments;

	if (!bytes)
		return ca->window;
	segments = bytes / packet + (bytes % packet != 0);
	return clamp(segments, 1U, most);
}

static __always_inline void radio_hold(struct sock *sk)
{
	tcp_sk(sk)->snd_cwnd = radio_window(sk);
	tcp_sk(sk)->snd_ssthresh = TCP_INFINITE_SSTHRESH;
}

/* Runs after the kernel has set the initial window. */
static __always_inline void radio_start(struct sock *sk)
{
	struct radio *ca = inet_csk_ca(sk);
	u32 initial = tcp_sk(sk)->snd_cwnd;

	ca->window = max(initial, 1U);
	radio_hold(sk);
}

SEC("struct_ops/radio_ssthresh")
u32 BPF_PROG(radio_ssthresh, struct sock *sk)
{
	return TCP_INFINITE_SSTHRESH;
}

SEC("struct_ops/radio_undo_cwnd")
u32 BPF_PROG(radio_undo_cwnd, struct sock *sk)
{
	return radio_window(sk);
}

#endif
