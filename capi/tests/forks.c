// A process whose threads use a cache forks, and its children go on with that cache. capi/tests/run compiles
// and runs it.
//
//     forks URL CHILDREN
//
// Exit status: 0 all is well, 1 something is not.

#include "test.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 8
#define KEYS 16

// A child that hangs ends after that many seconds, which no machine needs.
#define PATIENCE 120

// Exit status of a child that could not use the cache, because the fork has not waited any longer.
#define UNUSABLE 3

static haypile_cache *cache;
static atomic_bool stop;
static atomic_int forked_within;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void pause_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

// The outcome of one step of a child, or of a thread.
static void check_step(haypile_status status)
{
    if (status == HAYPILE_ERROR_CLOSED)
        _exit(UNUSABLE);
    // A file may be short of room, or of a processor for whoever makes it.
    CHECK(status >= 0 || status == HAYPILE_ERROR_BUSY || status == HAYPILE_ERROR_FULL ||
          status == HAYPILE_ERROR_NOT_A_COUNTER || status == HAYPILE_ERROR_UNSUPPORTED);
}

static int compute(void *context, haypile_output *output)
{
    (void)context;
    return haypile_output_append(output, "computed", 8);
}

// Uses a cache in all ways that lock something.
static void use(int number)
{
    char key[32], buffer[4096];
    size_t value_bytes;
    void *value;
    uint64_t count;
    haypile_pinned *pinned;
    haypile_values *values;
    const void *read;
    snprintf(key, sizeof key, "key %d", number % KEYS);
    memset(buffer, number, sizeof buffer);
    check_step(haypile_set(cache, key, strlen(key), buffer, (size_t)(number * 37 % 4096), 60000));
    check_step(haypile_get_into(cache, key, strlen(key), buffer, sizeof buffer, &value_bytes));
    check_step(haypile_get_pinned(cache, key, strlen(key), &pinned, &read, &value_bytes));
    haypile_unpin(pinned);
    check_step(haypile_add(cache, "count", 5, "0", 1, HAYPILE_TTL_NEVER));
    check_step(haypile_incr(cache, "count", 5, 1, &count));
    check_step(haypile_compare_and_delete(cache, key, strlen(key), buffer, 1));
    check_step(haypile_get_many(cache, &(haypile_key){key, strlen(key)}, 1, &values));
    haypile_free_values(values);
    snprintf(key, sizeof key, "page %d", number % KEYS);
    check_step(haypile_get_or_compute(cache, key, strlen(key), 20, compute, NULL, &value, &value_bytes));
    haypile_free(value);
    check_step(haypile_delete(cache, key, strlen(key)));
}

static void *work(void *context)
{
    int number = *(int *)context;
    while (!stop)
        use(number++);
    return NULL;
}

// Waits for a child; returns whether it could use the cache.
static bool ended_well(pid_t child)
{
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(!WIFSIGNALED(status) || WTERMSIG(status) != SIGALRM);
    CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == UNUSABLE));
    return WEXITSTATUS(status) == 0;
}

// Forks a child that goes on with the cache, and closes it if `closes`; returns its number.
static pid_t fork_one(bool closes)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(PATIENCE);
        for (int i = 0; i < 20; i++)
            use(i);
        if (closes)
            CHECK(haypile_close(cache) == HAYPILE_OK);
        _exit(0);
    }
    return child;
}

static int compute_and_fork(void *context, haypile_output *output)
{
    (void)context;
    forked_within += ended_well(fork_one(true));
    return haypile_output_append(output, "forked", 6);
}

// Computes values whose computations fork.
static void *work_and_fork(void *context)
{
    for (int i = 0; i < *(int *)context; i++) {
        void *value;
        size_t value_bytes;
        check_step(haypile_delete(cache, "forks", 5));
        check_step(haypile_get_or_compute(cache, "forks", 5, 60000, compute_and_fork, NULL, &value,
                                          &value_bytes));
        haypile_free(value);
    }
    return NULL;
}

static void test_forks_while_threads_work(int children)
{
    pthread_t threads[THREADS], forking;
    int numbers[THREADS], forks = children / 4, usable = 0;
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = 100 * i;
        CHECK(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
    }
    CHECK(pthread_create(&forking, NULL, work_and_fork, &forks) == 0);
    for (int i = 0; i < children; i++)
        usable += ended_well(fork_one(i % 2 == 0));
    CHECK(pthread_join(forking, NULL) == 0);
    stop = true;
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    stop = false;
    printf("%d of %d children, and %d of %d of computations, went on\n", usable, children,
           forked_within, forks);
    // A machine that gives a thread no processor for a second makes a few unusable.
    CHECK(usable > children / 2);
}

static atomic_bool computes, may_end;

static int compute_slowly(void *context, haypile_output *output)
{
    (void)context;
    computes = true;
    while (!may_end)
        pause_briefly();
    return haypile_output_append(output, "slow", 4);
}

static void *wait_for_the_value(void *context)
{
    void *value;
    size_t value_bytes;
    (void)context;
    check_step(haypile_get_or_compute(cache, "slow", 4, 60000, compute_slowly, NULL, &value,
                                      &value_bytes));
    CHECK(value_bytes == 4);
    haypile_free(value);
    return NULL;
}

// A thread that computes, and those that wait for it, keep no fork waiting.
static void test_forks_during_a_computation(void)
{
    pthread_t threads[4];
    check_step(haypile_delete(cache, "slow", 4));
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, wait_for_the_value, NULL) == 0);
    while (!computes)
        pause_briefly();
    double longest = 0;
    for (int i = 0; i < 10; i++) {
        double begin = now();
        pid_t child = fork_one(false);
        double took = now() - begin;
        longest = took > longest ? took : longest;
        ended_well(child);
    }
    printf("forks during a computation took up to %.1f ms\n", longest * 1e3);
    may_end = true;
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static atomic_bool was_asked;

// Answers whatever opens a cache of Redis, and no request for a value.
static void *answer_only_at_first(void *context)
{
    int listener = *(int *)context, connection = accept(listener, NULL, NULL);
    char request[4096];
    ssize_t bytes;
    while (connection >= 0) {
        while ((bytes = read(connection, request, sizeof request - 1)) > 0) {
            request[bytes] = 0;
            const char *answer = strstr(request, "PING") != NULL ? "+PONG\r\n" : "+OK\r\n";
            if (strstr(request, "GET") != NULL)
                was_asked = true;
            else
                CHECK(write(connection, answer, strlen(answer)) > 0);
        }
        close(connection);
        connection = accept(listener, NULL, NULL);
    }
    return NULL;
}

static void *ask(void *context)
{
    void *value;
    size_t value_bytes;
    CHECK(haypile_get(context, "key", 3, &value, &value_bytes) == HAYPILE_MISS);
    return NULL;
}

// A child that was forked while a thread waited for a server is told so, and does not hang.
static void test_a_fork_that_waits_no_longer(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    haypile_cache *server, *other;
    pthread_t answering, asking;
    char url[128];
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 8) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    CHECK(pthread_create(&answering, NULL, answer_only_at_first, &listener) == 0);
    snprintf(url, sizeof url, "redis://127.0.0.1:%d?timeout=3s", ntohs(address.sin_port));
    CHECK(haypile_open(url, &server) == HAYPILE_OK);
    CHECK(pthread_create(&asking, NULL, ask, server) == 0);
    while (!was_asked)
        pause_briefly();
    double begin = now();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(PATIENCE);
        CHECK(set(server, "key", "value") == HAYPILE_ERROR_CLOSED);
        CHECK(error_says("forked while another thread"));
        CHECK(haypile_close(server) == HAYPILE_OK);
        CHECK(haypile_open("memory:size=1MiB", &other) == HAYPILE_OK);
        CHECK(set(other, "key", "value") == HAYPILE_OK && has(other, "key", "value"));
        CHECK(haypile_close(other) == HAYPILE_OK);
        // Its own children inherit what it has opened, and no more of its parent's.
        _exit(0);
    }
    // At least almost the bound, and not until the server's timeout.
    double waited = now() - begin;
    CHECK(waited > 0.5 && waited < 2.9);
    CHECK(ended_well(child));
    CHECK(pthread_join(asking, NULL) == 0);
    CHECK(haypile_close(server) == HAYPILE_OK);
    shutdown(listener, SHUT_RDWR);
    CHECK(pthread_join(answering, NULL) == 0);
    close(listener);
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    CHECK(haypile_open(argv[1], &cache) == HAYPILE_OK);
    test_forks_while_threads_work(atoi(argv[2]));
    test_forks_during_a_computation();
    CHECK(haypile_close(cache) == HAYPILE_OK);
    if (strcmp(argv[1], "memory:size=4MiB") == 0)
        test_a_fork_that_waits_no_longer();
    return 0;
}
