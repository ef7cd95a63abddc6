/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the congestion controls here see of the kernel: the fields that they use
 * and no other. Where these lie is found out when an object is loaded
 * (preserve_access_index), so one object serves every kernel with type
 * information (BTF).
 */
#ifndef LINKTRIAL_CONGESTION_H
#define LINKTRIAL_CONGESTION_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u32 u32;
typedef __s32 s32;
typedef __u64 u64;
typedef _Bool bool;
enum { BPF_MAP_TYPE_ARRAY = 2 }; /* libbpf's headers name it */

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sock {
	u32 sk_mark;
};
struct inet_sock {
	struct sock sk;
};
struct inet_connection_sock {
	struct inet_sock icsk_inet;
	u8 icsk_backoff;
	u32 icsk_user_timeout;
	u64 icsk_ca_priv[13];
};
struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 mss_cache, srtt_us, rttvar_us, snd_una, max_packets_out;
	u32 snd_cwnd, snd_cwnd_cnt, snd_cwnd_clamp, snd_ssthresh;
	u8 is_cwnd_limited : 1;
};
struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
};
struct rate_sample {
	s32 delivered;
};
#pragma clang attribute pop

enum tcp_ca_event { CA_EVENT_TX_START, CA_EVENT_CWND_RESTART, CA_EVENT_COMPLETE_CWR, CA_EVENT_LOSS };
enum { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
enum { CA_ACK_SLOWPATH = 1 };
enum { TCP_CONG_NON_RESTRICTED = 1 };
enum { SOL_TCP = 6, TCP_USER_TIMEOUT = 18, TCP_RTO_MAX_MS = 44 };
#define TCP_INFINITE_SSTHRESH 0x7fffffff

/* Members go by their names; their order is the kernel's own matter. */
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
	u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
	u32 flags;
	void (*init)(struct sock *sk);
};

extern u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern u32 tcp_slow_start(struct tcp_sock *tp, u32 acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked) __ksym;

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct inet_connection_sock *inet_csk(struct sock *sk)
{
	return (struct inet_connection_sock *)sk;
}

/* The congestion control's own memory of a connection: zero before init. */
static __always_inline void *inet_csk_ca(struct sock *sk)
{
	return (void *)inet_csk(sk)->icsk_ca_priv;
}

#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define clamp(x, low, high) min(max(x, low), high)

/*
 * Defines a congestion control. Its name in the kernel is set when it is loaded
 * (protocols/tcp/bpf). The licence lets it call what the kernel exports to GPL.
 */
#define CONGESTION_CONTROL(...)						\
	char LICENSE[] SEC("license") = "Dual BSD/GPL";			\
	SEC(".struct_ops.link")						\
	struct tcp_congestion_ops control = {				\
		.flags = TCP_CONG_NON_RESTRICTED, __VA_ARGS__		\
	}

#endif
