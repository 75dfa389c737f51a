#include "reference.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* --- numbers --- */

/* 16 bits: sign, `exponent` bits of exponent, the rest of fraction. */
struct format {
    int exponent, fraction, bias;
};

static const struct format half = {5, 10, 15}, bfloat = {8, 7, 127};

static double read_16(const struct format *format, uint16_t bits)
{
    int exponent = bits >> format->fraction & ((1 << format->exponent) - 1);
    int fraction = bits & ((1 << format->fraction) - 1);
    double value;
    if (exponent == (1 << format->exponent) - 1)
        value = fraction ? NAN : INFINITY;
    else if (exponent == 0)
        value = ldexp(fraction, 1 - format->bias - format->fraction);
    else
        value = ldexp(fraction + (1 << format->fraction), exponent - format->bias - format->fraction);
    return bits & 0x8000 ? -value : value;
}

static uint16_t write_16(const struct format *format, double value)
{
    int most = (1 << format->exponent) - 1, exponent = 0;
    if (isnan(value))
        return (uint16_t)(most << format->fraction | 1 << (format->fraction - 1));
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double size = fabs(value);
    if (isinf(size))
        return (uint16_t)(sign | most << format->fraction);
    frexp(size, &exponent);
    exponent = size == 0 || exponent < 2 - format->bias ? 2 - format->bias : exponent;
    /* In units of the last place, which rint() rounds to nearest, ties to even. */
    double units = rint(ldexp(size, format->fraction + 1 - exponent));
    uint32_t bits = (uint32_t)units + (uint32_t)((exponent + format->bias - 2) << format->fraction);
    if (bits >= (uint32_t)most << format->fraction)
        bits = (uint32_t)most << format->fraction;
    return (uint16_t)(sign | bits);
}

double reference_read(enum weft_type type, const void *array, uint64_t index)
{
    switch (type) {
    case WEFT_FLOAT64:
        return ((const double *)array)[index];
    case WEFT_FLOAT32:
        return ((const float *)array)[index];
    case WEFT_FLOAT16:
        return read_16(&half, ((const uint16_t *)array)[index]);
    case WEFT_BFLOAT16:
        return read_16(&bfloat, ((const uint16_t *)array)[index]);
    case WEFT_INT32:
        return ((const int32_t *)array)[index];
    case WEFT_INT64:
        return (double)((const int64_t *)array)[index];
    default:
        return ((const uint8_t *)array)[index];
    }
}

void reference_write(enum weft_type type, void *array, uint64_t index, double value)
{
    static const uint32_t nan_32 = 0x7FC00000;
    static const uint64_t nan_64 = 0x7FF8000000000000;
    switch (type) {
    case WEFT_FLOAT64:
        ((double *)array)[index] = value;
        if (isnan(value))
            memcpy((double *)array + index, &nan_64, sizeof nan_64);
        break;
    case WEFT_FLOAT32:
        ((float *)array)[index] = (float)value;
        if (isnan(value))
            memcpy((float *)array + index, &nan_32, sizeof nan_32);
        break;
    case WEFT_FLOAT16:
        ((uint16_t *)array)[index] = write_16(&half, value);
        break;
    case WEFT_BFLOAT16:
        ((uint16_t *)array)[index] = write_16(&bfloat, value);
        break;
    case WEFT_INT32:
        ((int32_t *)array)[index] = (int32_t)value;
        break;
    case WEFT_INT64:
        ((int64_t *)array)[index] = (int64_t)value;
        break;
    default:
        ((uint8_t *)array)[index] = (uint8_t)value;
    }
}

/* --- two elements made one --- */

/* A number of any type. */
union number {
    double real;     /* float64; the others of floating point in float32's precision */
    uint64_t whole;  /* modulo 2^64 */
    int64_t compare; /* the same as a signed one */
};

static bool is_real(enum weft_type type)
{
    return type <= WEFT_BFLOAT16;
}

static union number get(enum weft_type type, const void *array, uint64_t index)
{
    if (is_real(type))
        return (union number){.real = reference_read(type, array, index)};
    if (type == WEFT_INT64)
        return (union number){.compare = ((const int64_t *)array)[index]};
    return (union number){.compare = (int64_t)reference_read(type, array, index)};
}

static void put(enum weft_type type, void *array, uint64_t index, union number value)
{
    if (is_real(type))
        reference_write(type, array, index, value.real);
    else if (type == WEFT_INT64)
        ((int64_t *)array)[index] = value.compare;
    else if (type == WEFT_INT32)
        ((int32_t *)array)[index] = (int32_t)(uint32_t)value.whole;
    else
        ((uint8_t *)array)[index] = (uint8_t)value.whole;
}

/* As an element of the type has it. */
static union number rounded(enum weft_type type, union number value)
{
    uint64_t element;
    put(type, &element, 0, value);
    return get(type, &element, 0);
}

static double lesser(double a, double b)
{
    if (isnan(a) || isnan(b))
        return NAN;
    if (a == b)
        return signbit(a) ? a : b;
    return a < b ? a : b;
}

static union number both(enum weft_type type, enum weft_op op, union number a, union number b)
{
    union number out;
    switch (op) {
    case WEFT_MIN:
        if (is_real(type))
            return (union number){.real = lesser(a.real, b.real)};
        return a.compare < b.compare ? a : b;
    case WEFT_MAX:
        if (is_real(type))
            return (union number){.real = -lesser(-a.real, -b.real)};
        return a.compare > b.compare ? a : b;
    default:
        if (type == WEFT_FLOAT64)
            out.real = a.real + b.real;
        else if (is_real(type))
            out.real = (float)a.real + (float)b.real;
        else
            out.whole = a.whole + b.whole;
        return rounded(type, out);
    }
}

static union number divided(enum weft_type type, union number sum, uint32_t by)
{
    if (type == WEFT_FLOAT64)
        return (union number){.real = sum.real / by};
    if (is_real(type))
        return (union number){.real = (float)sum.real / (float)by};
    return (union number){.compare = sum.compare / (int64_t)by};
}

/* --- the orders of summation --- */

static union number of_ring(const struct reference *r, uint32_t chunk, uint64_t index)
{
    union number sum = get(r->type, r->in[(chunk + 1) % r->size], index);
    for (uint32_t i = 2; i <= r->size; i++)
        sum = both(r->type, r->op, sum, get(r->type, r->in[(chunk + i) % r->size], index));
    return sum;
}

static union number of_tree(const struct reference *r, uint64_t index)
{
    union number value[64];
    uint32_t power = 1, count = 0;
    while (2 * power <= r->size)
        power *= 2;
    for (uint32_t i = 0; i < r->size; i++) {
        value[count] = get(r->type, r->in[i], index);
        if (i < 2 * (r->size - power)) {
            value[count] = both(r->type, r->op, value[count], get(r->type, r->in[i + 1], index));
            i++;
        }
        count++;
    }
    for (; count > 1; count /= 2)
        for (uint32_t i = 0; i < count / 2; i++)
            value[i] = both(r->type, r->op, value[2 * i], value[2 * i + 1]);
    return value[0];
}

/* The rank whose chunk of an all-reduce has the element. */
static uint32_t chunk_of(const struct reference *r, uint64_t index)
{
    uint32_t rank = 0;
    while (index >= (rank + 1) * r->count / r->size)
        rank++;
    return rank;
}

static void reduce(const struct reference *r, uint64_t first, uint64_t count, void *out)
{
    bool all = r->kind == WEFT_ALL_REDUCE;
    uint64_t bytes = r->count * (all ? 1 : r->size) * weft_type_bytes(r->type);
    bool ring = strcmp(weft_group_algorithm(r->kind, bytes, r->size), "ring") == 0;
    if (r->size == 1)
        memcpy(out, r->in[0], count * weft_type_bytes(r->type));
    for (uint64_t i = 0; i < count && r->size > 1; i++) {
        uint64_t index = first + i;
        union number sum =
            !ring ? of_tree(r, index) : of_ring(r, all ? chunk_of(r, index) : (uint32_t)(index / r->count), index);
        put(r->type, out, i, r->op == WEFT_AVG ? divided(r->type, sum, r->size) : sum);
    }
}

uint64_t reference_in(const struct reference *r)
{
    return r->count * (r->kind == WEFT_REDUCE_SCATTER || r->kind == WEFT_ALL_TO_ALL ? r->size : 1);
}

uint64_t reference_out(const struct reference *r)
{
    return r->count * (r->kind == WEFT_ALL_GATHER || r->kind == WEFT_ALL_TO_ALL ? r->size : 1);
}

void reference_result(const struct reference *r, uint32_t rank, void *out)
{
    uint64_t part = r->count * weft_type_bytes(r->type);
    uint32_t from = (uint32_t)((((int64_t)rank - r->by) % r->size + r->size) % r->size);
    if (part == 0)
        return;
    switch (r->kind) {
    case WEFT_ALL_REDUCE:
        reduce(r, 0, r->count, out);
        break;
    case WEFT_REDUCE_SCATTER:
        reduce(r, rank * r->count, r->count, out);
        break;
    case WEFT_BROADCAST:
        memcpy(out, r->in[r->root], part);
        break;
    case WEFT_SHIFT:
        memcpy(out, r->in[from], part);
        break;
    case WEFT_ALL_GATHER:
        for (uint32_t i = 0; i < r->size; i++)
            memcpy((char *)out + i * part, r->in[i], part);
        break;
    case WEFT_ALL_TO_ALL:
        for (uint32_t i = 0; i < r->size; i++)
            memcpy((char *)out + i * part, (const char *)r->in[i] + rank * part, part);
        break;
    }
}
