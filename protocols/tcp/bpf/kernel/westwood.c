// SPDX-License-Identifier: GPL-2.0
/*
 * TCP Westwood+ as Linux has it: Reno, but after a loss the window is what the
 * rate of acknowledgements and the smallest round-trip time say
 * (docs/tcp-variants.md). Times are the kernel's ticks, as there: which
 * acknowledgement ends a sample depends on them.
 */
#include "congestion.h"

#define RTT_FLOOR_US 50000	/* a bandwidth sample spans no less */
#define RTT_UNKNOWN_US 20000000 /* before the first round-trip time */

const volatile u32 tick_us = 4000; /* set when the object is loaded */

struct westwood {
	u32 sampled;		/* when the current sample began, in ticks */
	u32 bandwidth_raw;	/* bytes per tick, filtered once */
	u32 bandwidth;		/* bytes per tick, filtered twice */
	u32 acked;		/* bytes, in the current sample */
	u32 snd_una;		/* of the last acknowledgement */
	u32 counted_ahead;	/* bytes, for duplicate acknowledgements */
	u32 rtt, rtt_min;	/* ticks */
	u32 segments_at_least;	/* 2; 0 before init */
	bool rtt_min_anew;
	bool first_ack;
};

static __always_inline u32 ticks(u32 us)
{
	return tick_us ? (us + tick_us - 1) / tick_us : 0;
}

static __always_inline void westwood_start(struct sock *sk)
{
	struct westwood *w = inet_csk_ca(sk);

	w->sampled = bpf_jiffies64();
	w->bandwidth_raw = 0;
	w->bandwidth = 0;
	w->acked = 0;
	w->snd_una = tcp_sk(sk)->snd_una;
	w->counted_ahead = 0;
	w->rtt = ticks(RTT_UNKNOWN_US);
	w->rtt_min = ticks(RTT_UNKNOWN_US);
	w->segments_at_least = 2;
	w->rtt_min_anew = 1;
	w->first_ack = 1;
}

SEC("struct_ops/westwood_init")
void BPF_PROG(westwood_init, struct sock *sk)
{
	westwood_start(sk);
}

static __always_inline u32 filtered(u32 old, u32 sample)
{
	return (7 * old + sample) >> 3;
}

/* Takes a sample of the bandwidth once a round-trip time has passed. */
static __always_inline void westwood_sample(struct sock *sk, struct westwood *w)
{
	u32 now = bpf_jiffies64(), span = now - w->sampled, rate;
	u32 least = max(w->rtt, (u32)(tick_us ? RTT_FLOOR_US / tick_us : 0));

	/* The first acknowledgement is that of the handshake, or the first of data. */
	if (w->first_ack) {
		w->snd_una = tcp_sk(sk)->snd_una;
		w->first_ack = 0;
	}
	if (!w->rtt || span <= least)
		return;
	rate = w->acked / span;
	if (w->bandwidth_raw || w->bandwidth) {
		w->bandwidth_raw = filtered(w->bandwidth_raw, rate);
		w->bandwidth = filtered(w->bandwidth, w->bandwidth_raw);
	} else { /* the first sample fills the filter */
		w->bandwidth_raw = rate;
		w->bandwidth = rate;
	}
	w->acked = 0;
	w->sampled = now;
}

/*
 * The bytes that an acknowledgement reports. A duplicate one reports a segment
 * that arrived behind a gap; when the gap closes, these bytes have been counted.
 */
static __always_inline u32 westwood_reported(struct sock *sk, struct westwood *w)
{
	u32 segment = tcp_sk(sk)->mss_cache;
	u32 bytes = tcp_sk(sk)->snd_una - w->snd_una;

	if (!bytes) {
		w->counted_ahead += segment;
		bytes = segment;
	}
	if (bytes > segment) {
		if (w->counted_ahead >= bytes) {
			w->counted_ahead -= bytes;
			bytes = segment;
		} else {
			bytes -= w->counted_ahead;
			w->counted_ahead = 0;
		}
	}
	return bytes;
}

SEC("struct_ops/westwood_in_ack")
void BPF_PROG(westwood_in_ack, struct sock *sk, u32 flags)
{
	struct westwood *w = inet_csk_ca(sk);

	if (!w->segments_at_least) /* init was passed over (docs/tcp-variants.md) */
		westwood_start(sk);
	westwood_sample(sk, w);
	if (flags & CA_ACK_SLOWPATH)
		w->acked += westwood_reported(sk, w);
	else
		w->acked += tcp_sk(sk)->snd_una - w->snd_una;
	w->snd_una = tcp_sk(sk)->snd_una;
	w->rtt_min = w->rtt_min_anew ? w->rtt : min(w->rtt, w->rtt_min);
	w->rtt_min_anew = 0;
}

SEC("struct_ops/westwood_acked")
void BPF_PROG(westwood_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct westwood *w = inet_csk_ca(sk);
	s32 rtt = sample->rtt_us;

	if (rtt > 0)
		w->rtt = ticks(rtt);
}

/* The bandwidth-delay product, in segments. */
static __always_inline u32 westwood_window(struct sock *sk, struct westwood *w)
{
	u32 segment = tcp_sk(sk)->mss_cache;
	u32 bytes = w->bandwidth * w->rtt_min;
	u32 segments = segment ? bytes / segment : 0;

	return max(segments, w->segments_at_least);
}

SEC("struct_ops/westwood_event")
void BPF_PROG(westwood_event, struct sock *sk, enum tcp_ca_event event)
{
	struct westwood *w = inet_csk_ca(sk);
	u32 window;

	if (!w->segments_at_least) /* a timeout of the handshake */
		return;
	window = westwood_window(sk, w);
	if (event == CA_EVENT_COMPLETE_CWR) { /* the recovery has ended */
		tcp_sk(sk)->snd_ssthresh = window;
		tcp_sk(sk)->snd_cwnd = window;
	} else if (event == CA_EVENT_LOSS) { /* a timeout: the window is 1 */
		tcp_sk(sk)->snd_ssthresh = window;
		w->rtt_min_anew = 1;
	}
}

SEC("struct_ops/westwood_ssthresh")
u32 BPF_PROG(westwood_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

SEC("struct_ops/westwood_cong_avoid")
void BPF_PROG(westwood_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops/westwood_undo_cwnd")
u32 BPF_PROG(westwood_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

CONGESTION_CONTROL(
	.init = (void *)westwood_init,
	.in_ack_event = (void *)westwood_in_ack,
	.pkts_acked = (void *)westwood_acked,
	.cwnd_event = (void *)westwood_event,
	.ssthresh = (void *)westwood_ssthresh,
	.cong_avoid = (void *)westwood_cong_avoid,
	.undo_cwnd = (void *)westwood_undo_cwnd,
);
