/*
 * report_parts FOLDER: writes the files of the page that are inside of the program into FOLDER, and `list`: the names
 * of those that are there, in their order.
 */
#include <stdio.h>
#include <string.h>

#include "bench/report/parts.h"

static int write_part(const char *folder, const struct report_part *part)
{
    char path[4096];
    FILE *file;
    size_t written;

    snprintf(path, sizeof path, "%s/%s", folder, part->name);
    file = fopen(path, "w");
    if (!file)
        return -1;
    written = fwrite(part->text, 1, part->length, file);
    return fclose(file) == 0 && written == part->length && strlen(part->text) == part->length ? 0 : -1;
}

int main(int argc, char **argv)
{
    char names[1024] = "";
    struct report_part list = {.name = "list", .text = names};

    if (argc != 2)
        return 2;
    for (const struct report_part *part = report_parts; part->name; part++) {
        if (part->length == 0)
            continue;
        if (write_part(argv[1], part) < 0) {
            fprintf(stderr, "report_parts: %s cannot be written to %s\n", part->name, argv[1]);
            return 1;
        }
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s\n", part->name);
    }
    list.length = strlen(names);
    return write_part(argv[1], &list) < 0;
}
