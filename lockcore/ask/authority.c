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

bool authority_changes(const struct lc_attributes *now, const struct lc_change *change)
{
	bool gives_away = change->set_uid && change->attributes.uid != now->uid;

	return change->by == 0 || (authority_owns(now, change->by) && !gives_away);
}
