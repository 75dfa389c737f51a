#include "core/session/user.h"

#include "core/request/tray.h"

void wf_user_init(struct wf_user *user, bool asked)
{
    *user = (struct wf_user){.has_it = asked};
    wf_link_init(&user->accept_link);
    wf_link_init(&user->news_link);
}

void wf_user_fini(struct wf_user *user, struct wf_tray *news)
{
    wf_link_remove(&user->accept_link);
    wf_tray_drop(news, &user->news_link);
}
