/* SPDX-License-Identifier: MIT
 *
 * carried.h - records that have to be read again.
 */
#ifndef TESTS_CARRIED_H
#define TESTS_CARRIED_H

#include "pure/carry.h"
#include "unit.h"

/* For struct carry. */
static __attribute__((noreturn)) void refuse(const char *why)
{
	fail_msg("%s", why);
	__builtin_unreachable();
}

#endif
