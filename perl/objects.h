/* What perl's objects have of the C library, and how it ends with them; its errors. Included once, by Haypile.xs. */

/* Values are serialised, compressed or read by a callback: Perl does the rest of a call. */
#define IS_CODED 1
/* A value that is not there is asked for elsewhere. */
#define READS_THROUGH 2
/* Writes have callbacks. */
#define WRITES_THROUGH 4
/* A callback runs in which the cache may not be used. */
#define IS_LOCKED 8

/* A cache of the library. Several objects have it: those of threads, those with other prefixes, and claims. */
typedef struct {
    haypile_cache *cache;
    UV users;
} shared;

/* What one Perl object knows of its cache. */
typedef struct {
    shared *of;
    UV flags;
    /* The process in which IS_LOCKED was set. */
    pid_t locked_by;
    /* The TTL of entries that name none. */
    IV ttl_ms;
    /* The length of the last value that was read, and some bytes more. */
    STRLEN guess;
    /* Before each key. */
    char *prefix;
    STRLEN prefix_bytes;
} handle;

/* The right to compute a value, and the cache that it is of. */
typedef struct {
    shared *of;
    haypile_claim *claim;
} claim;

#ifdef USE_ITHREADS
static perl_mutex users_mutex;
#define LOCK_USERS MUTEX_LOCK(&users_mutex)
#define UNLOCK_USERS MUTEX_UNLOCK(&users_mutex)
#else
#define LOCK_USERS NOOP
#define UNLOCK_USERS NOOP
#endif

static void keep(shared *kept)
{
    LOCK_USERS;
    kept->users++;
    UNLOCK_USERS;
}

static void leave(shared *left)
{
    UV users;
    LOCK_USERS;
    users = --left->users;
    UNLOCK_USERS;
    if (users > 0)
        return;
    haypile_close(left->cache);
    free(left);
}

static handle *new_handle(shared *of, UV flags, IV ttl_ms, const char *prefix, STRLEN prefix_bytes)
{
    handle *made = (handle *)calloc(1, sizeof *made);
    made->of = of;
    made->flags = flags;
    made->ttl_ms = ttl_ms;
    made->guess = 256;
    made->prefix = (char *)malloc(prefix_bytes + 1);
    memcpy(made->prefix, prefix, prefix_bytes);
    made->prefix_bytes = prefix_bytes;
    return made;
}

static void *attached(pTHX_ SV *self, const MGVTBL *table);
static MGVTBL handle_table;

static int free_handle(pTHX_ SV *sv, MAGIC *magic)
{
    handle *freed = (handle *)magic->mg_ptr;
    PERL_UNUSED_ARG(sv);
    PERL_UNUSED_CONTEXT;
    magic->mg_ptr = NULL;
    if (freed != NULL) {
        leave(freed->of);
        free(freed->prefix);
        free(freed);
    }
    return 0;
}

/* For a lock: the cache may be used again. */
static int free_lock(pTHX_ SV *sv, MAGIC *magic)
{
    /* It is a reference to the object, which may have been closed in the meantime. */
    handle *of = (handle *)attached(aTHX_ sv, &handle_table);
    if (magic->mg_ptr != NULL && of != NULL)
        of->flags &= ~(UV)IS_LOCKED;
    magic->mg_ptr = NULL;
    return 0;
}

static int free_claim(pTHX_ SV *sv, MAGIC *magic)
{
    claim *freed = (claim *)magic->mg_ptr;
    PERL_UNUSED_ARG(sv);
    PERL_UNUSED_CONTEXT;
    if (freed != NULL) {
        haypile_release(freed->claim);
        leave(freed->of);
        free(freed);
    }
    magic->mg_ptr = NULL;
    return 0;
}

static int free_keys(pTHX_ SV *sv, MAGIC *magic)
{
    PERL_UNUSED_ARG(sv);
    PERL_UNUSED_CONTEXT;
    haypile_free_keys((haypile_keys *)magic->mg_ptr);
    magic->mg_ptr = NULL;
    return 0;
}

#ifdef USE_ITHREADS
/* A new thread shares the cache: the library is made for threads. */
static int share_handle(pTHX_ MAGIC *magic, CLONE_PARAMS *parameters)
{
    handle *other = (handle *)magic->mg_ptr;
    PERL_UNUSED_ARG(parameters);
    PERL_UNUSED_CONTEXT;
    if (other != NULL) {
        keep(other->of);
        magic->mg_ptr = (char *)new_handle(other->of, other->flags & ~(UV)IS_LOCKED, other->ttl_ms, other->prefix,
                                           other->prefix_bytes);
    }
    return 0;
}

/* Claims, locks and iterations stay with their thread. */
static int forget(pTHX_ MAGIC *magic, CLONE_PARAMS *parameters)
{
    PERL_UNUSED_ARG(parameters);
    PERL_UNUSED_CONTEXT;
    magic->mg_ptr = NULL;
    return 0;
}

#define VTABLE(free, dup) {NULL, NULL, NULL, NULL, free, NULL, dup, NULL}
#else
#define VTABLE(free, dup) {NULL, NULL, NULL, NULL, free, NULL, NULL, NULL}
#endif

static MGVTBL handle_table = VTABLE(free_handle, share_handle);
static MGVTBL claim_table = VTABLE(free_claim, forget);
static MGVTBL keys_table = VTABLE(free_keys, forget);
static MGVTBL lock_table = VTABLE(free_lock, forget);

static void *attached(pTHX_ SV *self, const MGVTBL *table)
{
    /* A plain scalar has no room for magic. */
    MAGIC *magic = SvROK(self) && SvTYPE(SvRV(self)) >= SVt_PVMG
                       ? mg_findext(SvRV(self), PERL_MAGIC_ext, table)
                       : NULL;
    return magic == NULL ? NULL : magic->mg_ptr;
}

static void attach(pTHX_ SV *self, MGVTBL *table, void *pointer)
{
    MAGIC *magic = sv_magicext(SvRV(self), NULL, PERL_MAGIC_ext, table, (char *)pointer, 0);
#ifdef USE_ITHREADS
    magic->mg_flags |= MGf_DUP;
#else
    PERL_UNUSED_VAR(magic);
#endif
}

/* Returns the open cache of an object. */
static handle *opened(pTHX_ SV *self)
{
    handle *found = (handle *)attached(aTHX_ self, &handle_table);
    if (found == NULL)
        croak("this cache is closed, or not a Cache::Haypile");
    return found;
}

/* The same, where no callback forbids it. */
static handle *unlocked(pTHX_ SV *self)
{
    handle *found = opened(aTHX_ self);
    /* A child that was forked in a callback is not in it. */
    if ((found->flags & IS_LOCKED) && found->locked_by == getpid())
        croak("the cache is already locked by this process: a callback uses it; set allow_recursive");
    return found;
}

/* Throws the last error of the library, at the line of the program that called this module. */
static void throw_error(pTHX)
{
    dSP;
    SV *text = newSVpv(haypile_last_error(), 0);
    sv_utf8_decode(text);
    PUSHMARK(SP);
    mXPUSHs(text);
    PUTBACK;
    call_pv("Carp::croak", G_VOID | G_DISCARD);
    croak("%s", haypile_last_error());
}

/* Whether a write or a removal has happened; throws what is not the key's or the value's own fault. */
static bool happened(pTHX_ haypile_status status)
{
    switch (status) {
    case HAYPILE_OK:
        return TRUE;
    case HAYPILE_MISS:
    case HAYPILE_NOT_STORED:
    case HAYPILE_ERROR_KEY_TOO_LONG:
    case HAYPILE_ERROR_VALUE_TOO_LARGE:
    case HAYPILE_ERROR_FULL:
        return FALSE;
    default:
        throw_error(aTHX);
        return FALSE;
    }
}

/* The outcome of a write under a condition: 1 if it has happened, 0 if the condition did not hold, -1 if the cache does not
   take the entry. */
static IV outcome(pTHX_ haypile_status status)
{
    if (status == HAYPILE_MISS || status == HAYPILE_NOT_STORED)
        return 0;
    return happened(aTHX_ status) ? 1 : -1;
}
