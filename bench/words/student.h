/*
 * student.h: how wide an interval is that few values give: the 97.5 % point of Student's t, as tables have it. From 31
 * degrees of freedom on it is rather too large than too small.
 */
#ifndef WF_BENCH_STUDENT_H
#define WF_BENCH_STUDENT_H

#include <stddef.h>

/* `freedom`: degrees of freedom, at least 1. */
double bench_student(size_t freedom);

#endif
