//! The plan of the starts of one command, or of two: the options with all defaults filled in.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use haypile::url::CacheUrl;
use haypile_measure::result::Parameters;

use super::bench::BenchOptions;
use super::condition::Condition;
use super::options::{StartupOptions, Variable};
use crate::experiment::cold::Cold;
use haypile_startup::{Accepted, Ready};

/// Variables that are kept of this program's environment: without them, little starts at all.
const KEPT: [&str; 15] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "TERM",
    "TMPDIR",
    "TZ",
    "XDG_RUNTIME_DIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "LD_LIBRARY_PATH",
];

/// Switches of caches. A value that was set for another purpose makes a cache look worthless.
const SWITCHES: [&str; 6] = [
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPYCACHEPREFIX",
    "CCACHE_DISABLE",
    "CCACHE_READONLY",
    "CCACHE_RECACHE",
    "FONTCONFIG_FILE",
];

/// Characters of paths that mean nothing to a shell, wherever they stand, nor to the URL of a cache;
/// letters and digits are harmless as well.
const HARMLESS: &str = "/._-+@=";

/// The plan of measuring the starts of one or two commands: their command lines, environment
/// variables and files, and the user's commands around them.
#[derive(Clone, Debug)]
pub(super) struct StartPlan {
    pub(super) name: String,
    /// The command; the first one of two.
    command: Vec<String>,
    /// The command of the condition without the cache, where that has a command of its own.
    off_command: Option<Vec<String>>,
    /// The second command, and both as a user would write them in a shell, with their variables.
    pair: Option<(Vec<String>, [String; 2])>,
    pub(super) ready: Ready,
    /// Exit statuses that count as success of the started command, if it is ready when it exits.
    pub(super) accepted: Accepted,
    /// The working directory of the started command and of the user's commands around it.
    pub(super) directory: PathBuf,
    /// The file that each started command reads as its standard input.
    pub(super) input: Option<PathBuf>,
    /// Variables of all conditions.
    base: BTreeMap<String, String>,
    /// Variables of the conditions with the cache, or of the first command.
    with_cache: Vec<Variable>,
    /// Variables of the condition without the cache, or of the second command.
    without_cache: Vec<Variable>,
    has_off: bool,
    pub(super) setup: Option<String>,
    pub(super) cleanup: Option<String>,
    pub(super) prepare: Option<String>,
    pub(super) conclude: Option<String>,
    pub(super) prime: Option<String>,
    pub(super) clear: Option<String>,
    pub(super) verify: Option<String>,
    pub(super) cache: Vec<PathBuf>,
    pub(super) cold_paths: Vec<PathBuf>,
    pub(super) span: Option<PathBuf>,
    /// Settings of the starts (such as the shell) that result rows keep as parameters, in addition
    /// to the commands.
    pub(super) settings: Parameters,
    /// Environment variables of this program that the started commands do not get.
    pub(super) removed: Vec<String>,
    /// Notes for the user on the plan, such as variables that may switch a cache off.
    pub(super) notes: Vec<String>,
}

/// The number of starts of a command under each condition, and the time limits of a start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    pub(super) blocks: u64,
    /// Number of untimed starts of each command before the timed ones; during the first, its
    /// processes are listed.
    pub(super) warmup: u64,
    pub(super) cold: Option<Cold>,
    pub(super) settle: Option<Duration>,
    pub(super) grace: Duration,
    /// Whether one start under each condition is traced for its system calls.
    pub(super) traces: bool,
    /// Whether further starts are watched after the measurement, to draw their processes over time.
    pub(super) draws: bool,
    pub(super) max_processes: u32,
    pub(super) seed: u64,
    pub(super) timeout: Duration,
}

/// The paths in the place of `{scratch}` and `{haypile}`.
struct Places<'a> {
    folder: &'a str,
    own: String,
    has_own: Cell<bool>,
}

impl<'a> Places<'a> {
    fn new(scratch: &'a Path) -> anyhow::Result<Self> {
        let folder = scratch.to_str().context("the path of the scratch folder is not UTF-8")?;
        check_harmless("the scratch folder", folder, "choose its place with --directory")?;
        let own = env::current_exe().context("cannot find this program's own file")?;
        Ok(Self { folder, own: own.to_string_lossy().into_owned(), has_own: Cell::new(false) })
    }

    fn text(&self, text: &str) -> String {
        self.has_own.set(self.has_own.get() || text.contains("{haypile}"));
        text.replace("{scratch}", self.folder).replace("{haypile}", &self.own)
    }

    fn texts(&self, texts: &[String]) -> Vec<String> {
        texts.iter().map(|text| self.text(text)).collect()
    }

    fn optional(&self, text: Option<&String>) -> Option<String> {
        text.map(|text| self.text(text))
    }

    fn paths(&self, texts: &[String]) -> Vec<PathBuf> {
        texts.iter().map(|text| Path::new(self.folder).join(self.text(text))).collect()
    }

    fn variables(&self, variables: &[Variable]) -> Vec<Variable> {
        let placed =
            |it: &Variable| Variable { name: it.name.clone(), value: self.text(&it.value) };
        variables.iter().map(placed).collect()
    }

    /// Refuses a path of this program that shells may not read as it is, if a text has it.
    fn check(&self) -> anyhow::Result<()> {
        if self.has_own.get() {
            check_harmless("this program", &self.own, "run it from another place")?;
        }
        Ok(())
    }
}

impl StartPlan {
    /// Creates the plan of measuring the starts of one command with and without its cache, in a
    /// scratch folder.
    ///
    /// # Errors
    ///
    /// Options that contradict each other, or tell no condition from another.
    pub(super) fn new(options: &StartupOptions, scratch: &Path) -> anyhow::Result<Self> {
        let places = Places::new(scratch)?;
        let words = |command: &Option<String>| {
            command.as_ref().map(|command| words(&places.text(command))).transpose()
        };
        let (with_command, off_command) =
            (words(&options.with_command)?, words(&options.off_command)?);
        let has_own_command = with_command.is_some() || off_command.is_some();
        if options.command.is_empty() && with_command.is_some() != off_command.is_some() {
            bail!(
                "only one of --with-command and --off-command is given; write the other command \
                 after --"
            );
        }
        let own = places.texts(&options.command);
        let off_command = off_command.or_else(|| with_command.as_ref().map(|_| own.clone()));
        let command = with_command.unwrap_or(own);
        let program = command.first().context("write the command to start after --")?;
        let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
        let has_off =
            has_own_command || !(options.without_cache.is_empty() && options.with_cache.is_empty());
        if !has_off && options.clear.is_none() {
            bail!(
                "starts with and without the cache would not differ: write --off NAME=VALUE, \
                 --with NAME=VALUE, --off-command COMMAND, or --clear COMMAND"
            );
        }
        let ready: Ready = places.text(&options.ready).parse()?;
        let mut plan = Self {
            name: options.name.clone().unwrap_or_else(|| name.into_owned()),
            off_command,
            pair: None,
            ready: in_folder(ready, scratch),
            accepted: Accepted::Success,
            directory: scratch.to_owned(),
            input: None,
            base: base(options.keep_env, &options.env, &places)?,
            with_cache: places.variables(&options.with_cache),
            without_cache: places.variables(&options.without_cache),
            has_off,
            setup: places.optional(options.setup.as_ref()),
            cleanup: None,
            prepare: places.optional(options.prepare.as_ref()),
            conclude: places.optional(options.conclude.as_ref()),
            prime: places.optional(options.prime.as_ref()),
            clear: places.optional(options.clear.as_ref()),
            verify: places.optional(options.verify.as_ref()),
            cache: places.paths(&options.cache),
            cold_paths: places.paths(&options.cold_path),
            span: options.span.as_deref().map(|cache| span(&places.text(cache))).transpose()?,
            settings: Parameters::new(),
            removed: removed(options.keep_env, &options.env),
            notes: Vec::new(),
            command,
        };
        places.check()?;
        plan.check_variables(["--with", "--off"])?;
        plan.check_leaks(["--with", "--off"], "leave out --keep-env or --env")?;
        let switches = SWITCHES.iter().filter(|name| plan.base.contains_key(**name));
        let switches: Vec<&str> = switches.copied().collect();
        if !switches.is_empty() {
            plan.notes.push(format!(
                "warning: the environment sets {}, in all conditions",
                switches.join(", ")
            ));
        }
        Ok(plan)
    }

    /// Creates the plan of comparing the starts of two commands, which run in the working
    /// directory.
    ///
    /// # Errors
    ///
    /// Options that contradict each other; an input that cannot be read.
    pub(super) fn of_two(options: &BenchOptions, scratch: &Path) -> anyhow::Result<Self> {
        let places = Places::new(scratch)?;
        let [first, second] = options.pair()?;
        let words = |command: &str| options.words(&places.text(command));
        let directory = env::current_dir().context("there is no working directory")?;
        if let Some(input) = &options.input {
            let name = input.display();
            std::fs::File::open(input).with_context(|| format!("--input {name}"))?;
        }
        let ready: Ready = places.text(&options.ready).parse()?;
        let plan = Self {
            name: options.name.clone(),
            command: words(first)?,
            off_command: None,
            pair: Some((words(second)?, options.written([first, second]))),
            ready: in_folder(ready, &directory),
            accepted: options.accepted(),
            input: options.input.as_ref().map(|input| directory.join(input)),
            directory,
            base: base(true, &options.env, &places)?,
            with_cache: places.variables(&options.env_a),
            without_cache: places.variables(&options.env_b),
            has_off: false,
            setup: places.optional(options.setup.as_ref()),
            cleanup: places.optional(options.cleanup.as_ref()),
            prepare: places.optional(options.prepare.as_ref()),
            conclude: places.optional(options.conclude.as_ref()),
            prime: None,
            clear: None,
            verify: None,
            cache: Vec::new(),
            cold_paths: Vec::new(),
            span: None,
            settings: options.settings(),
            removed: Vec::new(),
            notes: Vec::new(),
        };
        places.check()?;
        plan.check_variables(["--env-a", "--env-b"])?;
        plan.check_leaks(["--env-a", "--env-b"], "unset it first, as by env -u")?;
        Ok(plan)
    }

    /// Returns the command that is started under a condition, as a program and its arguments.
    pub(super) fn command(&self, condition: Condition) -> &[String] {
        match &self.pair {
            Some((second, _)) if condition == Condition::Second => second,
            _ if condition == Condition::Off => self.off_command.as_ref().unwrap_or(&self.command),
            _ => &self.command,
        }
    }

    /// Returns the two commands to compare, with their environment variables; `None` if one command
    /// is measured with and without its cache.
    pub(super) fn pair(&self) -> Option<&[String; 2]> {
        self.pair.as_ref().map(|(_, written)| written)
    }

    /// Returns the condition whose starts all others are compared with: the command with its full cache, or the first
    /// of two commands.
    pub(super) fn reference(&self) -> Condition {
        if self.pair.is_some() { Condition::First } else { Condition::With }
    }

    /// A variable has one value in a condition, and another in the other one.
    fn check_variables(&self, [first, second]: [&str; 2]) -> anyhow::Result<()> {
        for (option, own) in [(first, &self.with_cache), (second, &self.without_cache)] {
            for (at, Variable { name, value }) in own.iter().enumerate() {
                let other = own[..at].iter().find(|it| it.name == *name && it.value != *value);
                if let Some(other) = other {
                    bail!("{option} sets {name} twice: to '{}' and to '{value}'", other.value);
                }
            }
        }
        if let Some(Variable { name, value }) =
            self.with_cache.iter().find(|variable| self.without_cache.contains(variable))
        {
            bail!(
                "{name}={value} is set by {first} and by {second}, so that it makes no difference; \
                 set it with --env"
            );
        }
        Ok(())
    }

    /// A variable that makes the difference must not come from the environment in the other condition.
    fn check_leaks(&self, [first, second]: [&str; 2], remedy: &str) -> anyhow::Result<()> {
        let sides = [
            (second, &self.without_cache, &self.with_cache),
            (first, &self.with_cache, &self.without_cache),
        ];
        for (option, own, other) in sides {
            let leak = own.iter().find(|variable| {
                let is_set = other.iter().any(|it| it.name == variable.name);
                !is_set && self.base.get(&variable.name) == Some(&variable.value)
            });
            if let Some(Variable { name, value }) = leak {
                bail!(
                    "{name}={value} of {option} is in the environment of all conditions, so that \
                     they do not differ; {remedy} {name}"
                );
            }
        }
        Ok(())
    }

    /// Returns the conditions under which the command is started and measured.
    pub(super) fn conditions(&self) -> Vec<Condition> {
        let is_there = |condition: &Condition| match condition {
            Condition::With | Condition::Again => self.pair.is_none(),
            Condition::Fill => self.clear.is_some(),
            Condition::Off => self.has_off,
            Condition::First | Condition::FirstAgain | Condition::Second => self.pair.is_some(),
        };
        Condition::ALL.into_iter().filter(is_there).collect()
    }

    /// Returns the environment variables that the command is started with under a condition.
    pub(super) fn environment(&self, condition: Condition) -> BTreeMap<String, String> {
        let mut environment = self.base.clone();
        let is_other = matches!(condition, Condition::Off | Condition::Second);
        let own = if is_other { &self.without_cache } else { &self.with_cache };
        for Variable { name, value } in own {
            environment.insert(name.clone(), value.clone());
        }
        environment
    }

    /// Returns the environment variables of the user's commands that run before and after a start.
    pub(super) fn hook_environment(&self, condition: Condition) -> BTreeMap<String, String> {
        let mut environment = self.environment(condition);
        environment.insert("HAYPILE_CONDITION".to_owned(), condition.in_hooks().to_owned());
        environment
    }
}

/// Paths are pasted into commands of the shell without quotes: one that a shell reads in another way
/// would remove the user's folders, or run what is in a name.
fn check_harmless(what: &str, path: &str, remedy: &str) -> anyhow::Result<()> {
    let is_harmless = |it: &char| it.is_alphanumeric() || HARMLESS.contains(*it);
    if let Some(found) = path.chars().find(|it| !is_harmless(it)) {
        bail!(
            "the path of {what} has the character '{}', which shells may not read as it is: {}; \
             {remedy}: letters, digits and {HARMLESS} are allowed",
            found.escape_debug(),
            path.escape_debug()
        );
    }
    Ok(())
}

fn base(
    keeps_all: bool,
    named: &[String],
    places: &Places<'_>,
) -> anyhow::Result<BTreeMap<String, String>> {
    let is_kept = |name: &str| keeps_all || KEPT.contains(&name);
    // A variable that is not UTF-8 cannot be passed on.
    let own = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut base: BTreeMap<String, String> = own.filter(|(name, _)| is_kept(name)).collect();
    for text in named {
        match text.split_once('=') {
            Some(("", _)) => bail!(
                "--env '{text}' does not name an environment variable; write NAME or NAME=VALUE"
            ),
            Some((name, value)) => base.insert(name.to_owned(), places.text(value)),
            None => {
                let value =
                    env::var(text).with_context(|| format!("--env {text}: it is not set"))?;
                base.insert(text.clone(), value)
            }
        };
    }
    Ok(base)
}

/// Returns the names of variables that no condition has, those first without which a program may reach nothing.
fn removed(keeps_all: bool, named: &[String]) -> Vec<String> {
    const TELLING: [&str; 10] =
        ["CERT", "SSL", "_CA", "PROXY", "HOME", "PATH", "CONF", "INDEX", "LINKS", "URL"];
    if keeps_all {
        return Vec::new();
    }
    let is_named = |name: &str| named.iter().any(|it| it.split('=').next() == Some(name));
    let own = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut removed: Vec<String> =
        own.filter(|name| !KEPT.contains(&&**name) && !is_named(name)).collect();
    let is_telling = |name: &str| {
        let name = name.to_uppercase();
        TELLING.iter().any(|part| name.contains(part))
    };
    removed.sort_by_key(|name| (!is_telling(name), name.clone()));
    removed
}

/// Splits the text of a command into words, as a shell does.
pub(super) fn words(command: &str) -> anyhow::Result<Vec<String>> {
    let words = shlex::split(command)
        .with_context(|| format!("'{command}': a quote, or a backslash, has no end"))?;
    if words.first().is_none_or(String::is_empty) {
        bail!("the command '{command}' has no name of a program; begin it with one");
    }
    Ok(words)
}

/// A file is looked for where the command runs that makes it.
fn in_folder(ready: Ready, folder: &Path) -> Ready {
    match ready {
        Ready::File(path) => Ready::File(folder.join(path)),
        other => other,
    }
}

/// The file of a cache.
fn span(cache: &str) -> anyhow::Result<PathBuf> {
    let shown = CacheUrl::redacted_text(cache);
    let url: CacheUrl = cache.parse().with_context(|| format!("--span {shown}"))?;
    match url.levels() {
        [level] if level.scheme() == "file" && level.path().as_os_str().is_empty() => {
            bail!(
                "--span {shown} needs the absolute path of a cache file, as in \
                 file:{{scratch}}/cache"
            )
        }
        [level] if level.scheme() == "file" => Ok(PathBuf::from(level.path())),
        _ => bail!(
            "--span {shown} is not a cache in one file, and only such a cache has counters that \
             can be polled; write file:PATH"
        ),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};

    use super::*;

    fn plan(scratch: &str, words: &[&str]) -> anyhow::Result<StartPlan> {
        let command = StartupOptions::augment_args(Command::new("startup").no_binary_name(true));
        let matches = command.try_get_matches_from(words)?;
        StartPlan::new(&StartupOptions::from_arg_matches(&matches)?, Path::new(scratch))
    }

    #[test]
    fn a_variable_has_one_value_in_a_condition_and_another_in_the_other() {
        let error = |words: &[&str]| {
            let words = [words, &["--", "true"]].concat();
            plan("/tmp/x", &words).err().map(|error| error.to_string())
        };
        let same = error(&["--with", "X=1", "--with", "Y=1", "--off", "X=1"]).unwrap();
        assert!(same.contains("X=1 is set by --with and by --off"), "{same}");
        let twice = error(&["--off", "X=1", "--off", "X=2"]).unwrap();
        assert!(twice.contains("--off sets X twice: to '1' and to '2'"), "{twice}");
        assert!(
            error(&["--with", "X=1", "--with", "X=2"]).unwrap().contains("--with sets X twice")
        );
        assert_eq!(error(&["--with", "X=1", "--off", "X=2", "--off", "X=2"]), None);
    }

    #[test]
    fn relative_files_are_in_the_folder_where_the_command_runs() {
        let words = ["--off", "X=1", "--ready", "file:ready", "--", "true"];
        assert_eq!(plan("/tmp/x", &words).unwrap().ready, Ready::File("/tmp/x/ready".into()));
        let span = plan("/tmp/x", &["--off", "X=1", "--span", "file:c", "--", "true"]);
        assert!(span.unwrap_err().to_string().contains("file:{scratch}/cache"));
    }

    #[test]
    fn folders_whose_names_a_shell_would_read_otherwise_are_refused() {
        let words = ["--clear", "rm -rf {scratch}/cache", "--", "true"];
        for name in [
            "a b", "$(x)", "`x`", "a;b", "a&b", "a|b", "*", "?", "[a]", "{a,b}", "~", "#a", "a'b",
            "a\"b", "a\\b", "a\nb", "a\tb", "a<b", "a>b", "!", "a%41", "a,b", "a:b", "a\u{a0}b",
        ] {
            let error = plan(&format!("/tmp/{name}/x"), &words).unwrap_err().to_string();
            assert!(error.contains("--directory"), "{name}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
        let good = plan("/tmp/Größe_1-2.3+4@5=6/x", &words).unwrap();
        assert_eq!(good.clear.as_deref(), Some("rm -rf /tmp/Größe_1-2.3+4@5=6/x/cache"));
    }
}
