/*
 * engine_contract.h: the cases of the suite. Each opens its own world on the implementation it is given.
 */
#ifndef WEFT_TESTS_CONTRACT_ENGINE_CONTRACT_H
#define WEFT_TESTS_CONTRACT_ENGINE_CONTRACT_H

#include "world.h"

/* engine_clauses.c */
void connects_over_ipv4(const struct implementation *of);
void connects_over_ipv6(const struct implementation *of);
void listens_on_everything(const struct implementation *of);
void dials_from_a_bound_address(const struct implementation *of);
void refuses_a_missing_interface(const struct implementation *of);
void refuses_an_address_in_use(const struct implementation *of);
void reports_a_refused_connect(const struct implementation *of);
void receives_what_is_there(const struct implementation *of);
void ends_a_stream_with_zero(const struct implementation *of);
void finds_the_end_behind_bytes_seen_earlier(const struct implementation *of);
void keeps_partial_sends_inside(const struct implementation *of);
void tells_when_a_send_began(const struct implementation *of);
void takes_odd_vectors(const struct implementation *of);
void finishes_at_once_what_has_no_bytes(const struct implementation *of);
void reports_a_reset(const struct implementation *of);
void starts_anew_with_a_reused_descriptor(const struct implementation *of);
void tells_what_is_acknowledged(const struct implementation *of);
void tells_what_is_pending(const struct implementation *of);

/* engine_races.c */
void cancels_what_waits(const struct implementation *of);
void cancels_connects(const struct implementation *of);
void cancels_a_send_half_way(const struct implementation *of);
void loses_no_byte_to_cancel(const struct implementation *of);
void serves_small_beside_bulk(const struct implementation *of);
void hears_news_while_busy(const struct implementation *of);
void returns_no_more_than_asked(const struct implementation *of);
void carries_random_traffic(const struct implementation *of);
void shares_a_descriptor_between_engines(const struct implementation *of);

/* engine_extremes.c */
void serves_hundreds_at_once(const struct implementation *of);
void holds_a_send_while_its_memory_is_lent(const struct implementation *of);
void stops_lending_what_is_copied(const struct implementation *of);

/* engine_device.c: with cards of its own the simulator does without (tests/support/sim_cards.h) */
void receives_ordinary_bytes_with_control(const struct implementation *of);
void refuses_an_unknown_binding(const struct implementation *of);
void gives_back_what_it_never_had(const struct implementation *of);

/* engine_waiting.c: nothing to wait for in the simulator, and only there a watch over the caller */
void wakes_before_poll(const struct implementation *of);
void wakes_from_a_thread(const struct implementation *of);
void tells_of_work_while_it_rests(const struct implementation *of);
void gathers_while_it_sleeps(const struct implementation *of);
void tells_of_a_wake_from_a_thread(const struct implementation *of);
void does_not_wait_with_work_at_hand(const struct implementation *of);
void keeps_to_its_timeout(const struct implementation *of);
void shrugs_off_signals(const struct implementation *of);
void outlives_the_thread_that_posted(const struct implementation *of);
void serves_whoever_drives(const struct implementation *of);
void catches_callers_that_cheat(const struct implementation *of);

/* Traffic in both directions of some pairs, with random sizes, shapes and cancels, to the last byte. */
void run_traffic(struct world *world, int send_engine);

#endif
