/* SPDX-License-Identifier: MIT
 *
 * digest.h - the name of a user in the ensemble's _digest_ scheme, as in ACLs. The server computes
 * the same of what it is shown.
 */
#ifndef LOCKCORE_DIGEST_H
#define LOCKCORE_DIGEST_H

/* Makes of "user:password" "user:" and the SHA-1 of all of it in base64. To be freed; NULL for want
 * of memory. It leaves no copy of the password behind. */
char *digest_id(const char *credentials);

#endif
