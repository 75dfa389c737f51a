/* words.h: messages of control: a kind, which is the tag, and a line of text. */
#ifndef WF_COLL_WORDS_H
#define WF_COLL_WORDS_H

#include "collective/group/group.h"

enum wf_coll_kind {
    WF_COLL_HELLO = 1, /* who dials: struct wf_coll_hello_words */
    WF_COLL_WELCOME,   /* "TOKEN KEY": the other is taken; the key of the board, from rank 0, else 0 */
    WF_COLL_REFUSED,   /* "CODE TEXT": it is not */
    WF_COLL_CROSSED,   /* both have dialled: the session of the other one stays */
    WF_COLL_TABLE,     /* "FIRST COUNT", then a line for each: "RANK PROCESS HOST ADDRESSES" */
    WF_COLL_NOTES,     /* who was refused; before the last TABLE */
    WF_COLL_UP,        /* "NUMBER": all below have entered this barrier */
    WF_COLL_DOWN,      /* "NUMBER KEY": all have */
    WF_COLL_FAIL,      /* "GROUP CODE TEXT": it has ended. GROUP: its number at the receiver */
    WF_COLL_LEAVE, /* "GROUP NUMBER": this member leaves it, and has not done that operation; GROUP 0: it leaves all */
    WF_COLL_PART,  /* may this session end? */
    WF_COLL_MAY_PART,
    WF_COLL_MAY_NOT_PART,
    WF_COLL_PRESENT, /* "GROUP NUMBER", to rank 0: this member waits in this operation */
    WF_COLL_HERE,    /* "GROUP NUMBER", from rank 0: so does rank 0 */
    WF_COLL_GONE,    /* "MEMBER PROCESS HOST CODE TEXT": that member is lost */
    WF_COLL_ASK, /* "GROUP NUMBER OWN": this member is in that operation; who has left the group answers LEAVE to OWN */
    WF_COLL_DONE_WITH, /* this side wants the session no longer, of which it has said MAY_NOT_PART */
};

struct wf_coll_hello_words {
    unsigned version, rank, size, process;
    unsigned long long token; /* 0: not known */
    int patience_ms;          /* left of the time it waits for the group; -1: any */
    char name[WF_MEET_NAME_BYTES], host[WF_COLL_HOST_BYTES], weft[24];
    char addresses[WF_COLL_ADDRESSES_BYTES];
};

/* Returns the length. */
int wf_coll_hello_write(const struct wf_coll_hello_words *words, char *text, size_t room);
/* False: it is none. A HELLO of another version has its version, and nothing else. */
bool wf_coll_hello_read(const char *text, struct wf_coll_hello_words *words);

/* Sends it; a copy is kept until that is done. What fails shows when the session is lost. While no request is left,
 * what is said waits for one, in its order. */
void wf_coll_say(struct wf_coll_hub *hub, struct wf_coll_session *session, enum wf_coll_kind kind, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));
void wf_coll_say_bytes(struct wf_coll_hub *hub, struct wf_coll_session *session, enum wf_coll_kind kind,
                       const char *text, size_t length);
/* What waits for a request. */
void wf_coll_say_again(struct wf_coll_hub *hub);
/* What waits for one, and was for this session, which is closed. */
void wf_coll_unsay(struct wf_coll_hub *hub, const struct wf_coll_session *session);

#endif
