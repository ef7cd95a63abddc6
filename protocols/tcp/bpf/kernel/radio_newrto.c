// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * TCP-radio-newRTO (decola-2006, table 4): docs/tcp-variants.md describes it, and
 * lab/uml/kernel/tree/net/ipv4/tcp_radio.c is the same for the guest kernel.
 *
 * eBPF cannot write the timeout, but it can bound it: with the bound at the
 * timeout that the round-trip times give, there is nothing to double. The bound is
 * set to it when a timer has expired, and a little above it before: the kernel may
 * pass a call over (docs/tcp-variants.md), and the next round-trip times may
 * lengthen the timeout.
 */
#include "radio.h"

#define RTO_MAX_MS 12000
#define RETRIES 500
#define RTO_BOUND_MIN_MS 1000 /* the kernel takes no less (TCP_RTO_MAX_MS) */

static __always_inline void newrto_bound(struct sock *sk, u32 ms)
{
	struct radio *ca = inet_csk_ca(sk);
	int value = ms;

	if (ms == ca->rto_held_ms)
		return;
	if (!bpf_setsockopt(sk, SOL_TCP, TCP_RTO_MAX_MS, &value, sizeof(value)))
		ca->rto_held_ms = ms;
}

/* The timeout of RFC 6298, as tcp_sock has it. */
static __always_inline u32 newrto_timeout_ms(struct sock *sk)
{
	return ((tcp_sk(sk)->srtt_us >> 3) + tcp_sk(sk)->rttvar_us + 999) / 1000;
}

static __always_inline u32 newrto_in_bounds(struct sock *sk, u32 ms)
{
	struct radio *ca = inet_csk_ca(sk);

	return min(max(ms, (u32)RTO_BOUND_MIN_MS), ca->rto_max_ms);
}

static __always_inline void newrto_start(struct sock *sk)
{
	struct radio *ca = inet_csk_ca(sk);
	int most = 0, give_up = RETRIES * RTO_MAX_MS;

	if (bpf_getsockopt(sk, SOL_TCP, TCP_RTO_MAX_MS, &most, sizeof(most)) || most <= 0 || most > RTO_MAX_MS)
		most = RTO_MAX_MS;
	ca->rto_max_ms = most;
	newrto_bound(sk, most);
	if (!inet_csk(sk)->icsk_user_timeout) /* else the socket's owner has set one */
		bpf_setsockopt(sk, SOL_TCP, TCP_USER_TIMEOUT, &give_up, sizeof(give_up));
	radio_start(sk);
}

SEC("struct_ops/newrto_init")
void BPF_PROG(newrto_init, struct sock *sk)
{
	newrto_start(sk);
}

/* Only sk is read: the other arguments are not the same on every kernel. */
SEC("struct_ops/newrto_control")
void BPF_PROG(newrto_control, struct sock *sk)
{
	struct radio *ca = inet_csk_ca(sk);
	u32 ms;

	if (!ca->window) /* init was passed over */
		newrto_start(sk);
	radio_hold(sk);
	if (inet_csk(sk)->icsk_backoff) /* no new round-trip time since */
		return;
	ms = newrto_timeout_ms(sk);
	newrto_bound(sk, newrto_in_bounds(sk, ms + ms / 8));
}

/* Timeouts of the handshake come before init, and are not ours. */
SEC("struct_ops/newrto_set_state")
void BPF_PROG(newrto_set_state, struct sock *sk, u8 state)
{
	struct radio *ca = inet_csk_ca(sk);

	if (!ca->window)
		return;
	radio_hold(sk);
	if (state != TCP_CA_Loss)
		return;
	/* The kernel is about to double the timeout, and bounds it then. */
	newrto_bound(sk, newrto_in_bounds(sk, newrto_timeout_ms(sk)));
}

CONGESTION_CONTROL(
	.init = (void *)newrto_init,
	.cong_control = (void *)newrto_control,
	.set_state = (void *)newrto_set_state,
	.ssthresh = (void *)radio_ssthresh,
	.undo_cwnd = (void *)radio_undo_cwnd,
);
