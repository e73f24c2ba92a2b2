/* SPDX-License-Identifier: GPL-2.0-or-later */
#define SCHED_NORMAL	0
#define SCHED_IDLE	5
