/* SPDX-License-Identifier: MIT */
#include "ask/authority.h"

#include "pure/node_data.h"

void authority_read(const struct lc *lc, const struct ensemble_answer *answer,
                    struct lc_attributes *ret_attributes)
{
	if (!node_data_parse_lock(answer->data, (size_t)answer->data_len, ret_attributes))
		*ret_attributes = lc->config.without;
}

bool authority_owns(const struct lc_attributes *now, uid_t uid)
{
	return uid == 0 || uid == now->uid;
}
