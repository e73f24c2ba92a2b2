/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Search the LLC at all. */
SCHED_FEAT(SIS_SEARCH, true)
#ifdef CONFIG_PREEMPT_RT
SCHED_FEAT(SIS_NEVER, true)
#endif
SCHED_FEAT(SIS_LAZY, false)
