// A process in C that uses a shared file; README.md has what it is told, and what it answers.

#include <haypile.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WORDS 8
#define KEY_BYTES 4096

static haypile_cache *cache;

struct bytes {
    unsigned char *at;
    size_t length;
};

static int digit(char letter)
{
    return letter <= '9' ? letter - '0' : letter - 'a' + 10;
}

static struct bytes unhex(const char *text)
{
    struct bytes made = {malloc(strlen(text) + 1), 0};
    if (strcmp(text, "-") != 0)
        for (; text[0] != '\0' && text[1] != '\0'; text += 2)
            made.at[made.length++] = (unsigned char)(digit(text[0]) << 4 | digit(text[1]));
    return made;
}

static void say_hex(const void *data, size_t length)
{
    for (size_t at = 0; at < length; at++)
        printf("%02x", ((const unsigned char *)data)[at]);
    if (length == 0)
        printf("-");
}

static void say(const char *answer)
{
    printf("%s\n", answer);
    fflush(stdout);
}

static void say_status(haypile_status status)
{
    if (status < 0)
        printf("error %s\n", haypile_last_error());
    else
        printf("%s\n", status == HAYPILE_OK ? "ok" : "no");
    fflush(stdout);
}

static void say_value(const char *word, const void *value, size_t length)
{
    printf("%s ", word);
    say_hex(value, length);
    say("");
}

// A value that says whose it is, and how it goes on.
static size_t make(char *value, const char *key, unsigned long sequence)
{
    size_t head = (size_t)sprintf(value, "%s:%lu:", key, sequence), tail = sequence * 37 % 3000;
    memset(value + head, (int)(97 + sequence % 26), tail);
    return head + tail;
}

static int is_sound(const char *key, const char *value, size_t length)
{
    static char expected[KEY_BYTES + 4096];
    size_t key_bytes = strlen(key);
    if (length < key_bytes + 2 || memcmp(value, key, key_bytes) != 0 || value[key_bytes] != ':')
        return 0;
    char text[24] = {0};
    memcpy(text, value + key_bytes + 1, length - key_bytes - 1 < 23 ? length - key_bytes - 1 : 23);
    return make(expected, key, strtoul(text, NULL, 10)) == length && memcmp(expected, value, length) == 0;
}

static void load(char **words)
{
    static char value[KEY_BYTES + 4096];
    char key[KEY_BYTES], *others[16];
    size_t other_count = 0;
    unsigned long first = strtoul(words[2], NULL, 10), count = strtoul(words[3], NULL, 10),
                  keys = strtoul(words[4], NULL, 10);
    for (char *other = strtok(words[5], ","); other != NULL && other_count < 16; other = strtok(NULL, ","))
        others[other_count++] = other;
    for (unsigned long sequence = first; sequence < first + count; sequence++) {
        unsigned long number = sequence % keys;
        printf("w %lu %lu\n", number, sequence);
        fflush(stdout);
        snprintf(key, sizeof key, "%s:%lu", words[1], number);
        size_t length = make(value, key, sequence);
        if (haypile_set(cache, key, strlen(key), value, length, HAYPILE_TTL_NEVER) != HAYPILE_OK) {
            printf("error %s\n", haypile_last_error());
            exit(1);
        }
        printf("a %lu %lu\n", number, sequence);
        fflush(stdout);
        snprintf(key, sizeof key, "%s:%lu", others[(size_t)rand() % other_count], (unsigned long)rand() % keys);
        void *found;
        size_t found_bytes;
        if (haypile_get(cache, key, strlen(key), &found, &found_bytes) == HAYPILE_OK) {
            if (!is_sound(key, found, found_bytes)) {
                printf("bad ");
                say_hex(key, strlen(key));
                say_value("", found, found_bytes < 200 ? found_bytes : 200);
            }
            haypile_free(found);
        }
    }
    say("end");
}

struct wanted {
    long ms;
    struct bytes value;
    int is_computed;
};

static int compute(void *context, haypile_output *output)
{
    struct wanted *wanted = context;
    struct timespec time = {wanted->ms / 1000, wanted->ms % 1000 * 1000000};
    wanted->is_computed = 1;
    nanosleep(&time, NULL);
    return haypile_output_append(output, wanted->value.at, wanted->value.length);
}

static int compare(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

static void say_keys(void)
{
    haypile_keys *keys;
    const void *key;
    size_t key_bytes, count = 0;
    char **texts = malloc(100000 * sizeof *texts);
    haypile_list_keys(cache, &keys);
    while (haypile_next_key(keys, &key, &key_bytes) == HAYPILE_OK && count < 100000) {
        char *text = texts[count++] = malloc(2 * key_bytes + 2);
        strcpy(text, "-");
        for (size_t at = 0; at < key_bytes; at++)
            sprintf(text + 2 * at, "%02x", ((const unsigned char *)key)[at]);
    }
    haypile_free_keys(keys);
    qsort(texts, count, sizeof *texts, compare);
    printf("keys");
    for (size_t at = 0; at < count; at++) {
        printf(" %s", texts[at]);
        free(texts[at]);
    }
    free(texts);
    say("");
}

static void answer(char **words)
{
    const char *command = words[0];
    if (strcmp(command, "load") == 0) {
        load(words);
        return;
    }
    if (strcmp(command, "keys") == 0) {
        say_keys();
        return;
    }
    struct bytes key = unhex(words[1]), value = unhex(words[2] == NULL ? "-" : words[2]);
    void *found;
    size_t found_bytes;
    uint64_t number;
    haypile_status status;
    if (strcmp(command, "set") == 0) {
        int64_t ttl_ms = strtol(words[3], NULL, 10);
        say_status(haypile_set(cache, key.at, key.length, value.at, value.length,
                               ttl_ms == 0 ? HAYPILE_TTL_NEVER : ttl_ms));
    } else if (strcmp(command, "get") == 0) {
        if (haypile_get(cache, key.at, key.length, &found, &found_bytes) == HAYPILE_OK)
            say_value("value", found, found_bytes);
        else
            say("miss");
        haypile_free(found);
    } else if (strcmp(command, "add") == 0) {
        say_status(haypile_add(cache, key.at, key.length, value.at, value.length, HAYPILE_TTL_NEVER));
    } else if (strcmp(command, "delete") == 0) {
        say_status(haypile_delete(cache, key.at, key.length));
    } else if (strcmp(command, "incr") == 0) {
        if (haypile_incr(cache, key.at, key.length, strtoul(words[2], NULL, 10), &number) == HAYPILE_OK) {
            printf("number %" PRIu64, number);
            say("");
        } else {
            say("miss");
        }
    } else if (strcmp(command, "gets") == 0) {
        if (haypile_get_versioned(cache, key.at, key.length, &found, &found_bytes, &number) == HAYPILE_OK) {
            printf("versioned ");
            say_hex(found, found_bytes);
            printf(" %" PRIu64, number);
            say("");
        } else {
            say("miss");
        }
        haypile_free(found);
    } else if (strcmp(command, "cas") == 0) {
        say_status(haypile_cas(cache, key.at, key.length, value.at, value.length, HAYPILE_TTL_NEVER,
                               strtoull(words[3], NULL, 10)));
    } else if (strcmp(command, "lease") == 0) {
        haypile_lease lease;
        haypile_get_lease(cache, key.at, key.length, &lease);
        say_value("lease", lease.bytes, sizeof lease.bytes);
    } else if (strcmp(command, "leased") == 0) {
        haypile_lease lease;
        struct bytes given = unhex(words[3]);
        memcpy(lease.bytes, given.at, sizeof lease.bytes);
        free(given.at);
        say_status(haypile_set_leased(cache, key.at, key.length, value.at, value.length, HAYPILE_TTL_NEVER, &lease));
    } else if (strcmp(command, "compute") == 0) {
        struct wanted wanted = {strtol(words[2], NULL, 10), unhex(words[3]), 0};
        status = haypile_get_or_compute(cache, key.at, key.length, HAYPILE_TTL_NEVER, compute, &wanted, &found,
                                        &found_bytes);
        if (status == HAYPILE_OK)
            say_value(wanted.is_computed ? "computed" : "value", found, found_bytes);
        else
            say_status(status);
        haypile_free(found);
        free(wanted.value.at);
    } else {
        say("error unknown command");
    }
    free(key.at);
    free(value.at);
}

int main(int count, char **arguments)
{
    if (count != 2 || haypile_open(arguments[1], &cache) != HAYPILE_OK) {
        fprintf(stderr, "%s\n", count == 2 ? haypile_last_error() : "usage: worker URL");
        return 1;
    }
    srand((unsigned)time(NULL));
    say("ready");
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) {
        char *words[WORDS] = {0};
        size_t number = 0;
        for (char *word = strtok(line, " \n"); word != NULL && number < WORDS; word = strtok(NULL, " \n"))
            words[number++] = word;
        if (number > 0)
            answer(words);
    }
    free(line);
    return haypile_close(cache) == HAYPILE_OK ? 0 : 1;
}
