/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SD_FLAG
# error "a list: say what SD_FLAG() makes of it"
#endif
SD_FLAG(SD_BALANCE_NEWIDLE, 0)
SD_FLAG(SD_BALANCE_EXEC, 0)
SD_FLAG(SD_BALANCE_FORK, 0)
SD_FLAG(SD_BALANCE_WAKE, 0)
SD_FLAG(SD_WAKE_AFFINE, 0)
SD_FLAG(SD_SHARE_LLC, 1)
