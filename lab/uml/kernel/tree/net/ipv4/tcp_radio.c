// SPDX-License-Identifier: GPL-2.0
/*
 * TCP-radio and TCP-radio-newRTO, after T. de Cola and M. Marchese, "Study and
 * performance analysis of transport layer mechanisms applied in military radio
 * environment", 2006, section 4, tables 3 and 4.
 *
 * The congestion window is the bandwidth-delay product, which is known
 * beforehand, from the first packet to the last. The first duplicate
 * acknowledgement starts a retransmission. After a timeout
 *	radio		doubles the timeout, up to 120 s;
 *	radio_newrto	keeps it, at most 12 s, and gives up only after 500 times
 *			those 12 s (the paper: after 500 retransmissions).
 *
 * The window is in the socket's mark (SO_MARK), in bytes of IP packets. Without
 * a mark it is the initial window that the route or the kernel gives.
 * Retransmissions of the SYN are the socket's (TCP_SYNCNT), and with radio
 * those of data net.ipv4.tcp_retries2, which is the paper's 15.
 */
#include <linux/module.h>
#include <net/tcp.h>

#define RADIO_RTO_MAX		(120 * HZ)
#define NEWRTO_RTO_MAX		(12 * HZ)
#define NEWRTO_RETRIES		500
#define HEADERS			40	/* IP and TCP without options */

struct radio {
	u32 window;	/* segments when there is no mark */
};

static u32 radio_window(const struct sock *sk)
{
	const struct radio *ca = inet_csk_ca(sk);
	u32 bytes = READ_ONCE(sk->sk_mark);
	u32 packet = tcp_sk(sk)->mss_cache + HEADERS;

	if (!bytes)
		return ca->window;
	return clamp(DIV_ROUND_UP(bytes, packet), 1U, tcp_sk(sk)->snd_cwnd_clamp);
}

static void radio_hold(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tcp_snd_cwnd_set(tp, radio_window(sk));
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	tp->reordering = 1;
	tp->reord_seen = 0;
}

/* Runs after the kernel has set the initial window. */
static void radio_start(struct sock *sk)
{
	struct radio *ca = inet_csk_ca(sk);

	ca->window = max(tcp_snd_cwnd(tcp_sk(sk)), 1U);
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NEEDED, SK_PACING_NONE);
	radio_hold(sk);
}

static void radio_init(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);

	icsk->icsk_rto_max = min(READ_ONCE(icsk->icsk_rto_max), (u32)RADIO_RTO_MAX);
	radio_start(sk);
}

static void newrto_init(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);

	icsk->icsk_rto_max = min(READ_ONCE(icsk->icsk_rto_max), (u32)NEWRTO_RTO_MAX);
	if (!icsk->icsk_user_timeout)	/* else the socket's owner has set one */
		icsk->icsk_user_timeout = NEWRTO_RETRIES * (NEWRTO_RTO_MAX / HZ) * MSEC_PER_SEC;
	radio_start(sk);
}

static void radio_control(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	radio_hold(sk);
}

/*
 * On a timeout the kernel has cut the window before it calls this. Timeouts of
 * the handshake come before init, and are not ours.
 */
static void radio_set_state(struct sock *sk, u8 state)
{
	if (inet_csk(sk)->icsk_ca_initialized)
		radio_hold(sk);
}

static void newrto_set_state(struct sock *sk, u8 state)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	u32 rto;

	if (!icsk->icsk_ca_initialized)
		return;
	radio_hold(sk);
	if (state != TCP_CA_Loss)
		return;
	/* The kernel is about to double the timeout. */
	rto = clamp(__tcp_set_rto(tcp_sk(sk)), tcp_rto_min(sk), tcp_rto_max(sk));
	icsk->icsk_backoff = 0;
	icsk->icsk_rto = DIV_ROUND_UP(rto, 2);
}

static u32 radio_ssthresh(struct sock *sk)
{
	return TCP_INFINITE_SSTHRESH;
}

static u32 radio_undo_cwnd(struct sock *sk)
{
	return radio_window(sk);
}

static struct tcp_congestion_ops radio __read_mostly = {
	.flags		= TCP_CONG_NON_RESTRICTED,
	.name		= "radio",
	.owner		= THIS_MODULE,
	.init		= radio_init,
	.cong_control	= radio_control,
	.set_state	= radio_set_state,
	.ssthresh	= radio_ssthresh,
	.undo_cwnd	= radio_undo_cwnd,
};

static struct tcp_congestion_ops newrto __read_mostly = {
	.flags		= TCP_CONG_NON_RESTRICTED,
	.name		= "radio_newrto",
	.owner		= THIS_MODULE,
	.init		= newrto_init,
	.cong_control	= radio_control,
	.set_state	= newrto_set_state,
	.ssthresh	= radio_ssthresh,
	.undo_cwnd	= radio_undo_cwnd,
};

static int __init radio_register(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct radio) > ICSK_CA_PRIV_SIZE);
	err = tcp_register_congestion_control(&radio);
	if (err)
		return err;
	err = tcp_register_congestion_control(&newrto);
	if (err)
		tcp_unregister_congestion_control(&radio);
	return err;
}

static void __exit radio_unregister(void)
{
	tcp_unregister_congestion_control(&newrto);
	tcp_unregister_congestion_control(&radio);
}

module_init(radio_register);
module_exit(radio_unregister);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("TCP-radio and TCP-radio-newRTO");
