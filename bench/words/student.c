#include "student.h"

double bench_student(size_t freedom)
{
    static const double points[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                    2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                    2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
    size_t count = sizeof points / sizeof points[0];

    if (freedom <= count)
        return points[freedom - 1];
    return freedom < 60 ? points[count - 1] : 2.0; /* the larger of the neighbours: the interval is rather too wide */
}
