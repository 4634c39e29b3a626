/* SPDX-License-Identifier: MIT
 *
 * refused.h - records that have to be read again.
 */
#ifndef TESTS_REFUSED_H
#define TESTS_REFUSED_H

#include "pure/codec.h"
#include "unit.h"

/* For struct codec. */
static __attribute__((noreturn)) void refuse(const char *why)
{
	fail_msg("%s", why);
	__builtin_unreachable();
}

#endif
