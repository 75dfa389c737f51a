/*
 * The scripts for completion. What stands in them comes from the tables of options; all that the shells have to know
 * besides is how a command line is cut into words.
 */
#include "completion.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/plan/help.h"
#include "bench/raw/raw.h"

/* What completes the value of an option. */
enum kind { KIND_NONE, KIND_WORDS, KIND_FILE, KIND_FOLDER, KIND_SETTING, KIND_OTHER };

/* The options of all commands, one command after the other. */
struct table {
    struct bench_shown *rows; /* BENCH_SHOWN_MAX for each command */
    int *counts;
};

static const struct bench_shown *rows_of(const struct table *table, const struct bench_about *about, int *count)
{
    size_t index = (size_t)(about - bench_commands());

    *count = table->counts[index];
    return table->rows + index * BENCH_SHOWN_MAX;
}

static bool make_table(struct table *table)
{
    size_t commands = 0;

    while (bench_commands()[commands].name)
        commands++;
    table->rows = calloc(commands * BENCH_SHOWN_MAX, sizeof *table->rows);
    table->counts = calloc(commands, sizeof *table->counts);
    for (size_t i = 0; table->rows && table->counts && i < commands; i++) {
        struct bench_shown *rows = table->rows + i * BENCH_SHOWN_MAX;
        enum bench_command command = bench_commands()[i].command;
        table->counts[i] = command == BENCH_RAW ? raw_options_shown(rows) : bench_shown_options(command, rows);
    }
    return table->rows && table->counts;
}

static enum kind kind_of(const struct bench_shown *row)
{
    static const char lower[] = "abcdefghijklmnopqrstuvwxyz0123456789|";
    size_t plain = strspn(row->value, lower);

    if (!row->value[0])
        return KIND_NONE;
    if (strcmp(row->value, "NAME=VALUE") == 0)
        return KIND_SETTING;
    if (strcmp(row->value, "DIR") == 0)
        return KIND_FOLDER;
    if (strstr(row->value, "FILE") || strcmp(row->value, "LINK") == 0)
        return KIND_FILE;
    return strchr(row->value, '|') && (row->value[plain] == '\0' || row->value[plain] == '[') ? KIND_WORDS : KIND_OTHER;
}

/* The words of "a|b|c" with spaces between them; what follows a '[' is none of them. */
static void put_words(const char *words)
{
    for (; *words && *words != '['; words++)
        putchar(*words == '|' ? ' ' : *words);
}

static void put_settings(void)
{
    for (int i = 0; i < WF_SETTING_COUNT; i++)
        printf("%s%s", i ? " " : "", wf_setting(i)->name);
}

static void put_commands(void)
{
    for (const struct bench_about *about = bench_commands(); about->name; about++)
        printf("%s ", about->name);
    printf("help");
}

/* --- bash --- */

static void bash_options(const struct table *table)
{
    printf("# The options of a command.\n_weft_options() { # COMMAND\n    case $1 in\n");
    for (const struct bench_about *about = bench_commands(); about->name; about++) {
        int count;
        const struct bench_shown *rows = rows_of(table, about, &count);
        printf("    %s) echo '", about->name);
        for (int i = 0; i < count; i++) {
            if (rows[i].letter)
                printf("-%c ", rows[i].letter);
            printf("--%s%s", rows[i].name, i + 1 < count ? " " : "");
        }
        printf("' ;;\n");
    }
    printf("    esac\n}\n\n");
}

static void bash_value(const struct bench_shown *row)
{
    enum kind kind = kind_of(row);

    if (kind == KIND_NONE)
        return;
    if (row->letter)
        printf("        -%c | --%s) echo '", row->letter, row->name);
    else
        printf("        --%s) echo '", row->name);
    if (kind == KIND_WORDS)
        put_words(row->value);
    else
        printf("%s", kind == KIND_FILE      ? "FILE"
                     : kind == KIND_FOLDER  ? "DIR"
                     : kind == KIND_SETTING ? "SETTING"
                     : row->optional        ? "OPTIONAL"
                                            : "OTHER");
    printf("' ;;\n");
}

static void bash_values(const struct table *table)
{
    printf(
        "# What the value of an option is: its words, or FILE, DIR, SETTING, OTHER, OPTIONAL; nothing: it takes none.\n"
        "_weft_value() { # COMMAND OPTION\n    case $1 in\n");
    for (const struct bench_about *about = bench_commands(); about->name; about++) {
        int count;
        const struct bench_shown *rows = rows_of(table, about, &count);
        printf("    %s)\n        case $2 in\n", about->name);
        for (int i = 0; i < count; i++)
            bash_value(&rows[i]);
        printf("        esac\n        ;;\n");
    }
    printf("    esac\n}\n\n");
}

static void bash_words(void)
{
    printf(
        "# What stands behind a command besides options.\n_weft_words() { # COMMAND\n    case $1 in\n    help) echo '");
    put_commands();
    printf("' ;;\n");
    for (const struct bench_about *about = bench_commands(); about->name; about++) {
        if (!about->words || strcmp(about->words, "ADDR") == 0)
            continue;
        printf("    %s) echo '", about->name);
        if (strcmp(about->words, "NAME") == 0)
            put_settings();
        else
            put_words(about->words);
        printf("' ;;\n");
    }
    printf("    esac\n}\n\n");
}

static const char bash_function[] =
    "# Fills COMPREPLY with what may stand at the cursor.\n"
    "_weft() {\n"
    "    local command=${COMP_WORDS[1]-} current=${COMP_WORDS[COMP_CWORD]} at=$((COMP_CWORD - 1)) option='' kind='' "
    "before=''\n"
    "    COMPREPLY=()\n"
    "    if ((COMP_CWORD == 1)); then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$(_weft_words help) -h --help -V --version\" -- \"$current\")\n"
    "        return\n"
    "    fi\n"
    "    # '=' is a word of its own where it breaks words: \"--engine\" \"=\" \"ur\"; else it stands within one.\n"
    "    if [[ $current == '=' ]]; then\n"
    "        current=''\n"
    "    elif [[ ${COMP_WORDS[at]} == '=' ]]; then\n"
    "        at=$((at - 1))\n"
    "    elif [[ $current == --*=* ]]; then\n"
    "        before=${current%%=*}= current=${current#*=} at=-1\n"
    "    fi\n"
    "    option=${before%=}\n"
    "    ((at < 2)) || option=${COMP_WORDS[at]}\n"
    "    # \"--set\" \"engine\" \"=\" \"ur\": the value of a setting.\n"
    "    if [[ $option != -* ]] && ((at > 2)) && [[ ${COMP_WORDS[at + 1]} == '=' ]]; then\n"
    "        local setter=${COMP_WORDS[at - 1]}\n"
    "        [[ $setter != '=' ]] || setter=${COMP_WORDS[at - 2]}\n"
    "        [[ $setter != --set && $setter != --preset ]] || option=--${option//_/-} command=config\n"
    "    fi\n"
    "    [[ $option != -* ]] || kind=$(_weft_value \"$command\" \"$option\")\n"
    "    if [[ $kind == SETTING && $current == *=* ]]; then\n"
    "        before=$before${current%%=*}=\n"
    "        option=${current%%=*} current=${current#*=}\n"
    "        kind=$(_weft_value config \"--${option//_/-}\")\n"
    "    fi\n"
    "    if [[ $current == -* && -z $before ]]; then\n"
    "        kind=''\n"
    "    fi\n"
    "    case $kind in\n"
    "    FILE)\n"
    "        mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        ;;\n"
    "    DIR)\n"
    "        mapfile -t COMPREPLY < <(compgen -d -- \"$current\")\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        ;;\n"
    "    SETTING)\n"
    "        mapfile -t COMPREPLY < <(compgen -S = -W \"$(_weft_words config)\" -- \"$current\")\n"
    "        compopt -o nospace 2>/dev/null\n"
    "        ;;\n"
    "    OTHER | OPTIONAL) ;;\n"
    "    '')\n"
    "        if [[ $current == -* || -z $(_weft_words \"$command\") ]]; then\n"
    "            mapfile -t COMPREPLY < <(compgen -W \"$(_weft_options \"$command\")\" -- \"$current\")\n"
    "        elif [[ $(_weft_words \"$command\") == FILE ]]; then\n"
    "            mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
    "            compopt -o filenames 2>/dev/null\n"
    "        else\n"
    "            mapfile -t COMPREPLY < <(compgen -W \"$(_weft_words \"$command\")\" -- \"$current\")\n"
    "        fi\n"
    "        ;;\n"
    "    *) mapfile -t COMPREPLY < <(compgen -W \"$kind\" -- \"$current\") ;;\n"
    "    esac\n"
    "    [[ -z $before ]] || COMPREPLY=(\"${COMPREPLY[@]/#/$before}\")\n"
    "}\n"
    "\n"
    "complete -F _weft weft\n";

static void put_bash(const struct table *table)
{
    printf("# Completion of weft for bash. Made by 'weft completion bash'.\n# shellcheck shell=bash\n\n");
    bash_options(table);
    bash_values(table);
    bash_words();
    fputs(bash_function, stdout);
}

/* --- zsh --- */

/* Text within '...' of a specification, where '[', ']', ':' and '\' mean something. */
static void zsh_text(const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            printf("'\\'");
        else if (strchr("[]:\\", *text))
            putchar('\\');
        putchar(*text);
    }
}

static void zsh_option(const struct bench_shown *row)
{
    enum kind kind = kind_of(row);
    const char *equals = kind == KIND_NONE ? "" : "=";

    if (row->letter)
        printf(" \\\n            '(-%c --%s)'{-%c%s,--%s%s}'[", row->letter, row->name, row->letter,
               kind == KIND_NONE ? "" : "+", row->name, equals);
    else
        printf(" \\\n            '--%s%s[", row->name, equals);
    zsh_text(row->text);
    printf("]");
    if (kind != KIND_NONE) {
        printf("%s", row->optional ? "::" : ":");
        zsh_text(kind == KIND_WORDS ? "value" : row->value);
        printf(":");
    }
    if (kind == KIND_WORDS) {
        printf("(");
        put_words(row->value);
        printf(")");
    } else if (kind != KIND_NONE && kind != KIND_OTHER) {
        printf("%s", kind == KIND_FILE ? "_files" : kind == KIND_FOLDER ? "_files -/" : "_weft_setting");
    }
    printf("'");
}

static void zsh_words(const struct bench_about *about)
{
    if (!about->words || strcmp(about->words, "ADDR") == 0)
        return;
    if (strcmp(about->words, "FILE") == 0) {
        printf(" \\\n            '*:file:_files'");
        return;
    }
    printf(" \\\n            '*:word:(");
    if (strcmp(about->words, "NAME") == 0)
        put_settings();
    else
        put_words(about->words);
    printf(")'");
}

static void put_zsh(const struct table *table)
{
    printf("#compdef weft\n# Completion of weft for zsh. Made by 'weft completion zsh'.\n\n"
           "_weft_setting() {\n    if compset -P 1 '*='; then\n        _message value\n    else\n"
           "        compadd -q -S = -- ");
    put_settings();
    printf("\n    fi\n}\n\n_weft() {\n    local -a commands\n    commands=(\n");
    for (const struct bench_about *about = bench_commands(); about->name; about++) {
        printf("        '%s:", about->name);
        zsh_text(about->brief);
        printf("'\n");
    }
    printf("        'help:the options of a command'\n    )\n"
           "    if ((CURRENT == 2)); then\n        _describe command commands\n        return\n    fi\n"
           "    local command=$words[2]\n    shift words\n    ((CURRENT--))\n    case $command in\n"
           "    help) ((CURRENT > 2)) || _describe command commands ;;\n");
    for (const struct bench_about *about = bench_commands(); about->name; about++) {
        int count;
        const struct bench_shown *rows = rows_of(table, about, &count);
        printf("    %s)\n        _arguments", about->name);
        for (int i = 0; i < count; i++)
            zsh_option(&rows[i]);
        zsh_words(about);
        printf("\n        ;;\n");
    }
    printf(
        "    esac\n}\n\nif [[ $funcstack[1] == _weft ]]; then\n    _weft \"$@\"\nelse\n    compdef _weft weft\nfi\n");
}

int bench_completion(struct bench_options *options)
{
    struct table table = {0};
    const char *shell = options->word_count ? options->words[0] : "";
    bool bash = strcmp(shell, "bash") == 0;

    if (options->word_count != 1 || (!bash && strcmp(shell, "zsh") != 0)) {
        if (options->word_count == 1)
            fprintf(stderr, "weft: no completion for '%.60s': there is one for bash and one for zsh\n", shell);
        else
            fprintf(stderr, "weft: for which shell? Give 'weft completion bash' or 'weft completion zsh'\n");
        return BENCH_USAGE;
    }
    bool made = make_table(&table);
    if (made && bash)
        put_bash(&table);
    else if (made)
        put_zsh(&table);
    else
        fprintf(stderr, "weft: no memory for the table of options\n");
    free(table.rows);
    free(table.counts);
    return made ? BENCH_PASSED : BENCH_FAILED;
}
