// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * TCP-radio (decola-2006, table 3): docs/tcp-variants.md describes it, and
 * lab/uml/kernel/tree/net/ipv4/tcp_radio.c is the same for the guest kernel.
 */
#include "radio.h"

SEC("struct_ops/radio_init")
void BPF_PROG(radio_init, struct sock *sk)
{
	radio_start(sk);
}

/* Only sk is read: the other arguments are not the same on every kernel. */
SEC("struct_ops/radio_control")
void BPF_PROG(radio_control, struct sock *sk)
{
	struct radio *ca = inet_csk_ca(sk);

	if (!ca->window) /* init was passed over (docs/tcp-variants.md) */
		radio_start(sk);
	radio_hold(sk);
}

/*
 * On a timeout the kernel has cut the window before it calls this. Timeouts of
 * the handshake come before init, and are not ours.
 */
SEC("struct_ops/radio_set_state")
void BPF_PROG(radio_set_state, struct sock *sk, u8 state)
{
	struct radio *ca = inet_csk_ca(sk);

	if (ca->window)
		radio_hold(sk);
}

CONGESTION_CONTROL(
	.init = (void *)radio_init,
	.cong_control = (void *)radio_control,
	.set_state = (void *)radio_set_state,
	.ssthresh = (void *)radio_ssthresh,
	.undo_cwnd = (void *)radio_undo_cwnd,
);
