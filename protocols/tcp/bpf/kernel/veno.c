// SPDX-License-Identifier: GPL-2.0
/*
 * TCP Veno as Linux has it: Reno that estimates, as Vegas does, how many segments
 * wait in queues. With few of them a loss is taken for one of the radio's, and the
 * window is cut by a fifth instead of by half (docs/tcp-variants.md).
 */
#include "congestion.h"

#define RTT_UNKNOWN_US 0x7fffffff
/* Of the paper, in half segments: with fewer of them in queues a loss is random. */
#define QUEUED_LIMIT (3 << 1)

struct veno {
	u32 base_rtt_us;   /* the smallest of the connection */
	u32 least_rtt_us;  /* the smallest since the last acknowledgement of new data */
	u32 samples;	   /* of the round-trip time */
	u32 queued_halves; /* half segments in queues */
	bool estimates;	   /* not in recovery */
	bool grow;	   /* every other time when queues are long */
};

static __always_inline void veno_begin(struct sock *sk)
{
	struct veno *v = inet_csk_ca(sk);

	v->estimates = 1;
	v->least_rtt_us = RTT_UNKNOWN_US;
}

static __always_inline void veno_reset(struct sock *sk)
{
	struct veno *v = inet_csk_ca(sk);

	v->base_rtt_us = RTT_UNKNOWN_US;
	v->grow = 1;
	veno_begin(sk);
}

SEC("struct_ops/veno_init")
void BPF_PROG(veno_init, struct sock *sk)
{
	veno_reset(sk);
}

SEC("struct_ops/veno_acked")
void BPF_PROG(veno_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct veno *v = inet_csk_ca(sk);
	s32 measured = sample->rtt_us;
	u32 rtt;

	if (measured < 0)
		return;
	if (!v->base_rtt_us) /* init was passed over (docs/tcp-variants.md) */
		veno_reset(sk);
	rtt = measured + 1; /* never zero */
	v->base_rtt_us = min(v->base_rtt_us, rtt);
	v->least_rtt_us = min(v->least_rtt_us, rtt);
	v->samples++;
}

SEC("struct_ops/veno_set_state")
void BPF_PROG(veno_set_state, struct sock *sk, u8 state)
{
	struct veno *v = inet_csk_ca(sk);

	if (state == TCP_CA_Open)
		veno_begin(sk);
	else
		v->estimates = 0;
}

/* After a pause the path may be another one. */
SEC("struct_ops/veno_event")
void BPF_PROG(veno_event, struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_CWND_RESTART || event == CA_EVENT_TX_START)
		veno_reset(sk);
}

static __always_inline bool window_limits(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return 1;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* With long queues the window grows by one segment in two round-trip times. */
static __always_inline void veno_grow_slowly(struct tcp_sock *tp, struct veno *v, u32 acked)
{
	if (tp->snd_cwnd_cnt < tp->snd_cwnd) {
		tp->snd_cwnd_cnt += acked;
		return;
	}
	if (v->grow && tp->snd_cwnd < tp->snd_cwnd_clamp) {
		tp->snd_cwnd++;
		v->grow = 0;
	} else {
		v->grow = 1;
	}
	tp->snd_cwnd_cnt = 0;
}

SEC("struct_ops/veno_cong_avoid")
void BPF_PROG(veno_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct veno *v = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u64 unqueued;
	u32 most;

	if (!v->estimates) {
		tcp_reno_cong_avoid(sk, ack, acked);
		return;
	}
	if (!window_limits(sk))
		return;
	if (v->samples <= 2) { /* too few to be sure that one was not delayed */
		tcp_reno_cong_avoid(sk, ack, acked);
	} else {
		/* What the window would hold with no queue, in half segments. */
		unqueued = ((u64)tp->snd_cwnd * v->base_rtt_us << 1) / max(v->least_rtt_us, 1U);
		v->queued_halves = (tp->snd_cwnd << 1) - (u32)unqueued;
		if (tp->snd_cwnd < tp->snd_ssthresh)
			acked = tcp_slow_start(tp, acked);
		if (acked) {
			if (v->queued_halves < QUEUED_LIMIT)
				tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
			else
				veno_grow_slowly(tp, v, acked);
		}
		most = max(tp->snd_cwnd, 2U);
		tp->snd_cwnd = min(most, tp->snd_cwnd_clamp);
	}
	v->least_rtt_us = RTT_UNKNOWN_US;
}

SEC("struct_ops/veno_ssthresh")
u32 BPF_PROG(veno_ssthresh, struct sock *sk)
{
	struct veno *v = inet_csk_ca(sk);
	u32 window = tcp_sk(sk)->snd_cwnd;

	if (v->queued_halves < QUEUED_LIMIT)
		window = window * 4 / 5;
	else
		window /= 2;
	return max(window, 2U);
}

SEC("struct_ops/veno_undo_cwnd")
u32 BPF_PROG(veno_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

CONGESTION_CONTROL(
	.init = (void *)veno_init,
	.pkts_acked = (void *)veno_acked,
	.set_state = (void *)veno_set_state,
	.cwnd_event = (void *)veno_event,
	.ssthresh = (void *)veno_ssthresh,
	.cong_avoid = (void *)veno_cong_avoid,
	.undo_cwnd = (void *)veno_undo_cwnd,
);
