/* SPDX-License-Identifier: MIT */
#include "hold/refusal.h"

#include <errno.h>
#include <string.h>

const char *refusal_text(int error)
{
	switch (-error) {
	case EAGAIN:
		return "somebody else has the lock or waits for it";
	case ETIMEDOUT:
		return "somebody else had the lock until the time limit was over";
	case EINTR:
		return "a signal ended the wait";
	case ENOENT:
		return "the lock was removed";
	case ECANCELED:
		return "its place in the queue was taken away";
	case EDEADLK:
		return "deadlock: somebody else waits for the shared lock that this one has";
	case EHOSTUNREACH:
		return "the ensemble did not answer in time";
	case ESHUTDOWN:
		return "this mount is shutting down, or unusable";
	case ENOLCK:
		return "too many requests on this mount, more holders than on_lost could stop, or "
		       "a quota of the ensemble";
	case EACCES:
		return "the ensemble does not let this mount make entries there";
	case EPROTO:
		return "the queue has an entry of a client that does not wait for "
		       "zklockfs";
	case EBUSY:
		return "this user has too many requests at a time";
	case ENFILE:
		return "this user, or all users together, have too many files open here";
	case ENOMEM:
		return "the daemon has no memory";
	case ENAMETOOLONG:
		return "the path of the lock is too long";
	default:
		return strerror(-error);
	}
}
