/* Cache::Haypile's calls of the C library. */

#define PERL_NO_GET_CONTEXT
#include "EXTERN.h"
#include "perl.h"
#include "XSUB.h"

#include <haypile.h>
#include <time.h>
#include <unistd.h>

#include "objects.h"
#include "values.h"

/* The most arguments of get() and set(). */
#define MOST_ARGUMENTS 8
/* The most of its calls within each other. */
#define MOST_DEPTH 1000
#ifdef USE_ITHREADS
#define OF_EACH_THREAD __thread
#else
#define OF_EACH_THREAD
#endif
/* The longest pause between two looks at what another process computes, in milliseconds. */
#define LONGEST_PAUSE_MS 50

/* Calls of this module that are within each other; of each thread. */
static OF_EACH_THREAD I32 depth;

/* Returns what a method returns for the arguments of the XS function that calls it. It runs on a stack of its own, so that
   `next` and `last` in a callback do not leave this function behind. */
static SV *go_on_in_perl(pTHX_ const char *method, I32 ax, I32 items)
{
    SV *arguments[MOST_ARGUMENTS], *answer;
    I32 at;
    dSP;
    if (items > MOST_ARGUMENTS)
        croak("too many arguments");
    /* Each is a recursion of C too. */
    if (depth >= MOST_DEPTH)
        croak("callbacks of caches are nested more than %d deep", MOST_DEPTH);
    for (at = 0; at < items; at++)
        arguments[at] = PL_stack_base[ax + at];
    ENTER;
    SAVEI32(depth);
    depth++;
    PUSHSTACKi(PERLSI_MAGIC);
    PUSHMARK(SP);
    EXTEND(SP, MOST_ARGUMENTS);
    for (at = 0; at < items; at++)
        PUSHs(arguments[at]);
    PUTBACK;
    call_method(method, G_SCALAR);
    SPAGAIN;
    answer = SvREFCNT_inc(POPs);
    PUTBACK;
    POPSTACK;
    LEAVE;
    return sv_2mortal(answer);
}

/* Waits for as many milliseconds, or until a signal comes, and lets perl handle it. */
static void pause_for(pTHX_ IV ms)
{
    struct timespec time;
    time.tv_sec = (time_t)(ms / 1000);
    time.tv_nsec = (long)(ms % 1000) * 1000000L;
    nanosleep(&time, NULL);
    PERL_ASYNC_CHECK();
}

MODULE = Cache::Haypile    PACKAGE = Cache::Haypile

PROTOTYPES: DISABLE

BOOT:
#ifdef USE_ITHREADS
    /* A thread that loads this first after another one has. */
    static int is_made = 0;
    if (!is_made) {
        MUTEX_INIT(&users_mutex);
        is_made = 1;
    }
#endif

const char *
library_version()
  CODE:
    RETVAL = haypile_version();
  OUTPUT:
    RETVAL

SV *
_last_error()
  CODE:
    RETVAL = newSVpv(haypile_last_error(), 0);
    sv_utf8_decode(RETVAL);
    /* No text begins with none. */
    if (SvCUR(RETVAL) == 0)
        sv_setpvs(RETVAL, "no error");
  OUTPUT:
    RETVAL

void
_open(SV *self, SV *url, UV flags, IV ttl_ms, SV *prefix)
  PREINIT:
    haypile_cache *cache;
    shared *made;
    const char *text, *bytes;
    STRLEN text_bytes, prefix_bytes;
  CODE:
    if (!SvROK(self) || attached(aTHX_ self, &handle_table) != NULL)
        croak("this cache is open already");
    text = SvPVutf8(url, text_bytes);
    if (strlen(text) != text_bytes)
        croak("a URL has no NUL");
    bytes = SvPVbyte(prefix, prefix_bytes);
    if (haypile_open(text, &cache) != HAYPILE_OK)
        throw_error(aTHX);
    made = (shared *)calloc(1, sizeof *made);
    made->cache = cache;
    made->users = 1;
    attach(aTHX_ self, &handle_table, new_handle(made, flags, ttl_ms, bytes, prefix_bytes));

void
_share(SV *self, SV *other, SV *prefix)
  PREINIT:
    handle *of;
    const char *bytes;
    STRLEN prefix_bytes;
  CODE:
    /* Opens the cache of another object, with other keys. */
    of = opened(aTHX_ other);
    bytes = SvPVbyte(prefix, prefix_bytes);
    keep(of->of);
    attach(aTHX_ self, &handle_table, new_handle(of->of, 0, of->ttl_ms, bytes, prefix_bytes));

void
_close(SV *self)
  CODE:
    if (attached(aTHX_ self, &handle_table) != NULL)
        sv_unmagicext(SvRV(self), PERL_MAGIC_ext, &handle_table);

bool
is_open(SV *self)
  CODE:
    RETVAL = attached(aTHX_ self, &handle_table) != NULL;
  OUTPUT:
    RETVAL

bool
_is_locked(SV *self)
  PREINIT:
    handle *of;
  CODE:
    of = opened(aTHX_ self);
    RETVAL = (of->flags & IS_LOCKED) && of->locked_by == getpid();
  OUTPUT:
    RETVAL

SV *
_locked(SV *self)
  PREINIT:
    handle *of;
  CODE:
    /* The cache may not be used until what this returns is gone, however the scope is left. */
    of = unlocked(aTHX_ self);
    of->flags |= IS_LOCKED;
    of->locked_by = getpid();
    RETVAL = newRV_noinc(newRV_inc(SvRV(self)));
    attach(aTHX_ RETVAL, &lock_table, of);
  OUTPUT:
    RETVAL

void
get(SV *self, SV *key, ...)
  PREINIT:
    request asked;
    SV *value;
  PPCODE:
    /* Read once, whoever goes on with it. */
    key = ST(1) = settled_key(aTHX_ key);
    begin(aTHX_ &asked, self, key);
    if ((asked.of->flags & IS_CODED) || items > 2) {
        ST(0) = go_on_in_perl(aTHX_ "_get", ax, items);
        XSRETURN(1);
    }
    value = read_value(aTHX_ &asked);
    if (value == NULL && (asked.of->flags & READS_THROUGH)) {
        ST(0) = go_on_in_perl(aTHX_ "_read_through", ax, items);
        XSRETURN(1);
    }
    if (value == NULL)
        XSRETURN_UNDEF;
    mPUSHs(value);

void
_read(SV *self, SV *key)
  PREINIT:
    request asked;
    SV *value;
  PPCODE:
    begin(aTHX_ &asked, self, key);
    value = read_value(aTHX_ &asked);
    if (value == NULL)
        XSRETURN_EMPTY;
    mPUSHs(value);

void
set(SV *self, SV *key, SV *value, ...)
  PREINIT:
    request asked;
  PPCODE:
    if (SvGMAGICAL(value))
        value = ST(2) = sv_mortalcopy(value);
    key = ST(1) = settled_key(aTHX_ is_special(value) && !is_special(key) ? sv_mortalcopy(key) : key);
    if ((unlocked(aTHX_ self)->flags & (IS_CODED | WRITES_THROUGH)) || items > 3) {
        ST(0) = go_on_in_perl(aTHX_ "_set", ax, items);
        XSRETURN(1);
    }
    begin_write(aTHX_ &asked, self, key, value);
    mPUSHi(happened(aTHX_ haypile_set(asked.cache, asked.key, asked.key_bytes, asked.value, asked.value_bytes,
                                      asked.of->ttl_ms))
               ? 1
               : 0);

bool
_write(SV *self, SV *key, SV *value, IV ttl_ms, SV *lease = NULL)
  PREINIT:
    request asked;
    haypile_lease given;
    bool is_leased;
  CODE:
    is_leased = lease != NULL && SvOK(lease);
    if (is_leased)
        copy_exactly(aTHX_ lease, given.bytes, sizeof given.bytes, "this is not a lease: lease() returns one");
    begin_write(aTHX_ &asked, self, key, value);
    RETVAL = happened(
        aTHX_ is_leased
            ? haypile_set_leased(asked.cache, asked.key, asked.key_bytes, asked.value, asked.value_bytes, ttl_ms, &given)
            : haypile_set(asked.cache, asked.key, asked.key_bytes, asked.value, asked.value_bytes, ttl_ms));
  OUTPUT:
    RETVAL

SV *
lease(SV *self, SV *key)
  PREINIT:
    request asked;
    haypile_lease granted;
  CODE:
    begin(aTHX_ &asked, self, key);
    if (haypile_get_lease(asked.cache, asked.key, asked.key_bytes, &granted) != HAYPILE_OK)
        throw_error(aTHX);
    RETVAL = newSVpvn((char *)granted.bytes, sizeof granted.bytes);
  OUTPUT:
    RETVAL

IV
_add(SV *self, SV *key, SV *value, IV ttl_ms)
  ALIAS:
    _replace = 1
  PREINIT:
    request asked;
  CODE:
    begin_write(aTHX_ &asked, self, key, value);
    RETVAL = outcome(
        aTHX_ ix == 0 ? haypile_add(asked.cache, asked.key, asked.key_bytes, asked.value, asked.value_bytes, ttl_ms)
                      : haypile_replace(asked.cache, asked.key, asked.key_bytes, asked.value, asked.value_bytes, ttl_ms));
  OUTPUT:
    RETVAL

void
_read_versioned(SV *self, SV *key)
  PREINIT:
    request asked;
    haypile_pinned *pinned;
    const void *value;
    void *copy;
    size_t value_bytes;
    haypile_hit hit;
  PPCODE:
    /* The value, its version, and the milliseconds that it still has: -1 if it never expires. */
    begin(aTHX_ &asked, self, key);
    if (!happened(aTHX_ haypile_get_pinned(asked.cache, asked.key, asked.key_bytes, &pinned, &value, &value_bytes)))
        XSRETURN_EMPTY;
    haypile_pinned_hit(pinned, &hit, sizeof hit);
    EXTEND(SP, 3);
    mPUSHs(new_value(aTHX_ value, value_bytes));
    haypile_unpin(pinned);
    if (!hit.has_version) {
        SP--;
        if (!happened(aTHX_ haypile_get_versioned(asked.cache, asked.key, asked.key_bytes, &copy, &value_bytes,
                                                  &hit.version)))
            XSRETURN_EMPTY;
        mPUSHs(new_value(aTHX_ copy, value_bytes));
        haypile_free(copy);
    }
    mPUSHs(newSVpvn((char *)&hit.version, sizeof hit.version));
    mPUSHi(hit.expires_in_ms == HAYPILE_TTL_NEVER ? -1 : (IV)hit.expires_in_ms);

IV
_write_version(SV *self, SV *key, SV *value, IV ttl_ms, SV *version)
  PREINIT:
    request asked;
    uint64_t number;
  CODE:
    copy_exactly(aTHX_ version, &number, sizeof number, NO_VERSION);
    begin_write(aTHX_ &asked, self, key, value);
    RETVAL = outcome(
        aTHX_ haypile_cas(asked.cache, asked.key, asked.key_bytes, asked.value, asked.value_bytes, ttl_ms, number));
  OUTPUT:
    RETVAL

IV
_remove_version(SV *self, SV *key, SV *version)
  PREINIT:
    request asked;
    uint64_t number;
  CODE:
    copy_exactly(aTHX_ version, &number, sizeof number, NO_VERSION);
    begin(aTHX_ &asked, self, key);
    RETVAL = outcome(aTHX_ haypile_delete_version(asked.cache, asked.key, asked.key_bytes, number));
  OUTPUT:
    RETVAL

bool
_exists(SV *self, SV *key)
  ALIAS:
    _remove = 1
  PREINIT:
    request asked;
  CODE:
    begin(aTHX_ &asked, self, key);
    RETVAL = happened(aTHX_ ix == 0 ? haypile_contains(asked.cache, asked.key, asked.key_bytes)
                                    : haypile_delete(asked.cache, asked.key, asked.key_bytes));
  OUTPUT:
    RETVAL

bool
_touch(SV *self, SV *key, IV ttl_ms)
  PREINIT:
    request asked;
  CODE:
    begin(aTHX_ &asked, self, key);
    RETVAL = happened(aTHX_ haypile_touch(asked.cache, asked.key, asked.key_bytes, ttl_ms));
  OUTPUT:
    RETVAL

SV *
_count(SV *self, SV *key, UV delta, bool is_down)
  PREINIT:
    request asked;
    uint64_t number;
    haypile_status status;
  CODE:
    begin(aTHX_ &asked, self, key);
    status = is_down ? haypile_decr(asked.cache, asked.key, asked.key_bytes, (uint64_t)delta, &number)
                     : haypile_incr(asked.cache, asked.key, asked.key_bytes, (uint64_t)delta, &number);
    if (!happened(aTHX_ status))
        XSRETURN_UNDEF;
    RETVAL = newSVuv((UV)number);
  OUTPUT:
    RETVAL

void
_read_many(SV *self, AV *keys)
  PREINIT:
    handle *of;
    haypile_key *asked;
    haypile_values *values;
    AV *copies;
    SSize_t number, at;
    haypile_status status;
  PPCODE:
    number = av_len(keys) + 1;
    if (number == 0)
        XSRETURN_EMPTY;
    asked = (haypile_key *)temporary(aTHX_ (STRLEN)number * sizeof *asked);
    /* All are settled before the bytes of one are taken. */
    copies = (AV *)sv_2mortal((SV *)newAV());
    for (at = 0; at < number; at++) {
        SV **key = av_fetch(keys, at, 0);
        SV *copy = newSVpvn("", 0);
        av_push(copies, copy);
        if (key != NULL)
            sv_copypv(copy, *key);
    }
    of = unlocked(aTHX_ self);
    for (at = 0; at < number; at++) {
        char *room = of->prefix_bytes == 0 ? NULL : temporary(aTHX_ SHORT_KEY);
        STRLEN key_bytes;
        asked[at].key = key_of(aTHX_ of, *av_fetch(copies, at, 0), room, &key_bytes);
        asked[at].key_bytes = key_bytes;
        /* No cache has an entry of such a key, and it would end the call. */
        if (key_bytes > LONGEST_KEY)
            asked[at].key_bytes = 0;
    }
    status = haypile_get_many(of->of->cache, asked, (size_t)number, &values);
    if (status != HAYPILE_OK)
        throw_error(aTHX);
    EXTEND(SP, number);
    for (at = 0; at < number; at++) {
        const void *value;
        size_t value_bytes;
        /* A key without a value is not undef, which is a value. */
        if ((asked[at].key_bytes > 0 || SvCUR(*av_fetch(copies, at, 0)) == 0) &&
            haypile_values_at(values, (size_t)at, &value, &value_bytes) == HAYPILE_OK)
            mPUSHs(newRV_noinc(new_value(aTHX_ value, value_bytes)));
        else
            PUSHs(&PL_sv_undef);
    }
    haypile_free_values(values);

void
_claim(SV *self, SV *key, IV ttl_ms, IV most_ms = IV_MAX)
  PREINIT:
    request asked;
    claim *made;
    SV *object;
    void *value;
    size_t value_bytes;
    int64_t wait_ms;
    IV nap_ms = 1;
    haypile_status status;
  PPCODE:
    /* The value; or undef and a claim on it; or nothing if another caller has computed for `most_ms`, or the key is too
       long. */
    begin(aTHX_ &asked, self, key);
    if (asked.key_bytes > LONGEST_KEY)
        XSRETURN_EMPTY;
    /* A signal's handler can change the variable that has the key, and close the cache: the claim keeps both. */
    asked.key = SvPVX(sv_2mortal(newSVpvn(asked.key, asked.key_bytes)));
    made = (claim *)calloc(1, sizeof *made);
    made->of = asked.of->of;
    keep(made->of);
    /* Whatever ends this function, a signal's handler that dies among it, the claim ends with its scalar. */
    object = sv_2mortal(sv_bless(newRV_noinc(newSV(0)), gv_stashpvs("Cache::Haypile::Claim", GV_ADD)));
    attach(aTHX_ object, &claim_table, made);
    for (;;) {
        status = haypile_try_claim(made->of->cache, asked.key, asked.key_bytes, ttl_ms, &made->claim, &value, &value_bytes,
                                   &wait_ms);
        if (status != HAYPILE_PENDING)
            break;
        if (most_ms <= 0)
            XSRETURN_EMPTY;
        if (nap_ms > most_ms)
            nap_ms = most_ms;
        if (nap_ms > wait_ms)
            nap_ms = (IV)wait_ms;
        pause_for(aTHX_ nap_ms);
        most_ms -= nap_ms;
        if (nap_ms < LONGEST_PAUSE_MS)
            nap_ms = nap_ms * 2 < LONGEST_PAUSE_MS ? nap_ms * 2 : LONGEST_PAUSE_MS;
    }
    if (status == HAYPILE_OK) {
        mPUSHs(new_value(aTHX_ value, value_bytes));
        haypile_free(value);
        XSRETURN(1);
    }
    if (status != HAYPILE_MISS)
        throw_error(aTHX);
    EXTEND(SP, 2);
    PUSHs(&PL_sv_undef);
    PUSHs(object);

SV *
_keys(SV *self)
  PREINIT:
    haypile_keys *keys;
  CODE:
    if (haypile_list_keys(unlocked(aTHX_ self)->of->cache, &keys) != HAYPILE_OK)
        throw_error(aTHX);
    RETVAL = sv_bless(newRV_noinc(newSV(0)), gv_stashpvs("Cache::Haypile::Keys", GV_ADD));
    attach(aTHX_ RETVAL, &keys_table, keys);
  OUTPUT:
    RETVAL

SV *
_prefix(SV *self)
  PREINIT:
    handle *of;
  CODE:
    of = opened(aTHX_ self);
    RETVAL = newSVpvn(of->prefix, of->prefix_bytes);
  OUTPUT:
    RETVAL

void
_clear(SV *self)
  CODE:
    if (haypile_clear(unlocked(aTHX_ self)->of->cache) != HAYPILE_OK)
        throw_error(aTHX);

void
flush(SV *self, bool durable = FALSE)
  CODE:
    if (haypile_flush(unlocked(aTHX_ self)->of->cache, durable) != HAYPILE_OK)
        throw_error(aTHX);

void
_counts(SV *self)
  PREINIT:
    haypile_stats stats;
  PPCODE:
    if (haypile_get_stats(opened(aTHX_ self)->of->cache, &stats, sizeof stats) != HAYPILE_OK)
        throw_error(aTHX);
    EXTEND(SP, 2);
    mPUSHu((UV)(stats.hits + stats.misses));
    mPUSHu((UV)stats.hits);

SV *
url(SV *self)
  ALIAS:
    prometheus = 1
    _warnings = 2
    _writable_by_others = 3
  PREINIT:
    haypile_cache *cache;
    char *text;
    haypile_status status;
  CODE:
    cache = opened(aTHX_ self)->of->cache;
    status = ix == 0   ? haypile_url(cache, &text)
             : ix == 1 ? haypile_prometheus(cache, &text)
             : ix == 2 ? haypile_warnings(cache, &text)
                       : haypile_writable_by_others(cache, &text);
    if (status != HAYPILE_OK)
        throw_error(aTHX);
    RETVAL = newSVpv(text, 0);
    haypile_free(text);
    sv_utf8_decode(RETVAL);
  OUTPUT:
    RETVAL

void
_limits(SV *self)
  PREINIT:
    haypile_limits limits;
  PPCODE:
    if (haypile_get_limits(opened(aTHX_ self)->of->cache, &limits, sizeof limits) != HAYPILE_OK)
        throw_error(aTHX);
    EXTEND(SP, 3);
    mPUSHu((UV)limits.max_key_bytes);
    mPUSHu((UV)limits.max_value_bytes);
    mPUSHu((UV)limits.capacity_bytes);

MODULE = Cache::Haypile    PACKAGE = Cache::Haypile::Claim

void
complete(SV *self, SV *value)
  PREINIT:
    claim *held;
    haypile_claim *ended;
    const char *stored;
    STRLEN stored_bytes;
  CODE:
    held = (claim *)attached(aTHX_ self, &claim_table);
    value = settled(aTHX_ value);
    if (held != NULL && held->claim != NULL) {
        stored = stored_of(aTHX_ value, &stored_bytes);
        ended = held->claim;
        held->claim = NULL;
        /* A child of a fork has no part in it: the value is its own. */
        haypile_complete(ended, stored, stored_bytes, NULL, 0);
    }

MODULE = Cache::Haypile    PACKAGE = Cache::Haypile::Keys

SV *
next(SV *self)
  PREINIT:
    haypile_keys *keys;
    const void *key;
    size_t key_bytes;
    haypile_status status;
  CODE:
    /* The bytes of a key. */
    keys = (haypile_keys *)attached(aTHX_ self, &keys_table);
    if (keys == NULL)
        croak("this iteration is of another thread");
    status = haypile_next_key(keys, &key, &key_bytes);
    if (status == HAYPILE_END)
        XSRETURN_UNDEF;
    if (status != HAYPILE_OK)
        throw_error(aTHX);
    RETVAL = newSVpvn((const char *)key, key_bytes);
  OUTPUT:
    RETVAL
