//! The plan of the starts of one command: the options with everything in its place.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use haypile::url::{CacheUrl, redacted};

use super::condition::Condition;
use super::options::{StartupOptions, Variable};
use haypile_startup::Ready;

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

/// A command to measure.
#[derive(Clone, Debug)]
pub(super) struct StartPlan {
    pub(super) name: String,
    pub(super) command: Vec<String>,
    pub(super) ready: Ready,
    pub(super) scratch: PathBuf,
    /// Variables of all conditions.
    base: BTreeMap<String, String>,
    with_cache: Vec<Variable>,
    without_cache: Vec<Variable>,
    pub(super) has_off: bool,
    pub(super) setup: Option<String>,
    pub(super) prepare: Option<String>,
    pub(super) conclude: Option<String>,
    pub(super) prime: Option<String>,
    pub(super) clear: Option<String>,
    pub(super) verify: Option<String>,
    pub(super) cache: Vec<PathBuf>,
    pub(super) cold_paths: Vec<PathBuf>,
    pub(super) span: Option<PathBuf>,
    /// Notes that a user should read.
    pub(super) notes: Vec<String>,
}

impl StartPlan {
    /// Puts the options together, in a scratch folder.
    ///
    /// # Errors
    ///
    /// Options that contradict each other, or tell no condition from another.
    pub(super) fn new(options: &StartupOptions, scratch: &Path) -> anyhow::Result<Self> {
        let folder = scratch.to_str().context("the path of the scratch folder is not UTF-8")?;
        check_harmless("the scratch folder", folder, "choose its place with --directory")?;
        let own = env::current_exe().context("cannot find this program's own file")?;
        let own = own.to_string_lossy().into_owned();
        let has_own = Cell::new(false);
        let place = |text: &str| {
            has_own.set(has_own.get() || text.contains("{haypile}"));
            text.replace("{scratch}", folder).replace("{haypile}", &own)
        };
        let all = |texts: &[String]| texts.iter().map(|text| place(text)).collect::<Vec<_>>();
        let paths = |texts: &[String]| -> Vec<PathBuf> {
            let path = |text: &String| scratch.join(place(text));
            texts.iter().map(path).collect()
        };
        let optional = |text: &Option<String>| text.as_deref().map(place);
        let variables = |variables: &[Variable]| {
            let placed =
                |it: &Variable| Variable { name: it.name.clone(), value: place(&it.value) };
            variables.iter().map(placed).collect::<Vec<_>>()
        };
        let command = all(&options.command);
        let program = command.first().context("write the command to start after --")?;
        let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
        let has_off = !(options.without_cache.is_empty() && options.with_cache.is_empty());
        if !has_off && options.clear.is_none() {
            bail!(
                "nothing tells a start with the cache from one without: write --off NAME=VALUE, \
                 --with NAME=VALUE, or --clear COMMAND"
            );
        }
        let mut plan = Self {
            name: options.name.clone().unwrap_or_else(|| name.into_owned()),
            ready: in_scratch(options.ready(&place)?, scratch),
            scratch: scratch.to_owned(),
            base: base(options, &place)?,
            with_cache: variables(&options.with_cache),
            without_cache: variables(&options.without_cache),
            has_off,
            setup: optional(&options.setup),
            prepare: optional(&options.prepare),
            conclude: optional(&options.conclude),
            prime: optional(&options.prime),
            clear: optional(&options.clear),
            verify: optional(&options.verify),
            cache: paths(&options.cache),
            cold_paths: paths(&options.cold_path),
            span: options.span.as_deref().map(|cache| span(&place(cache))).transpose()?,
            notes: Vec::new(),
            command,
        };
        if has_own.get() {
            check_harmless("this program", &own, "run it from another place")?;
        }
        plan.check_variables()?;
        plan.check_leaks()?;
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

    /// A variable has one value in a condition, and another in the other one.
    fn check_variables(&self) -> anyhow::Result<()> {
        for (option, own) in [("--with", &self.with_cache), ("--off", &self.without_cache)] {
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
                "{name}={value} is set by --with and by --off, so that it makes no difference; set it \
                 with --env"
            );
        }
        Ok(())
    }

    /// A variable that makes the difference must not come from the environment in the other condition.
    fn check_leaks(&self) -> anyhow::Result<()> {
        let sides = [
            ("--off", &self.without_cache, &self.with_cache),
            ("--with", &self.with_cache, &self.without_cache),
        ];
        for (option, own, other) in sides {
            let leak = own.iter().find(|variable| {
                let is_set = other.iter().any(|it| it.name == variable.name);
                !is_set && self.base.get(&variable.name) == Some(&variable.value)
            });
            if let Some(Variable { name, value }) = leak {
                bail!(
                    "{name}={value} of {option} is in the environment of all conditions, so that they do \
                     not differ; leave out --keep-env or --env {name}"
                );
            }
        }
        Ok(())
    }

    /// The conditions that can be told apart.
    pub(super) fn conditions(&self) -> Vec<Condition> {
        let is_there = |condition: &Condition| match condition {
            Condition::With | Condition::Again => true,
            Condition::Fill => self.clear.is_some(),
            Condition::Off => self.has_off,
        };
        Condition::ALL.into_iter().filter(is_there).collect()
    }

    /// All variables of a condition.
    pub(super) fn environment(&self, condition: Condition) -> BTreeMap<String, String> {
        let mut environment = self.base.clone();
        let own = if condition == Condition::Off { &self.without_cache } else { &self.with_cache };
        for Variable { name, value } in own {
            environment.insert(name.clone(), value.clone());
        }
        environment
    }

    /// The same for commands around a start.
    pub(super) fn hook_environment(&self, condition: Condition) -> BTreeMap<String, String> {
        let mut environment = self.environment(condition);
        environment.insert("HAYPILE_CONDITION".to_owned(), condition.name().to_owned());
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
    options: &StartupOptions,
    place: &impl Fn(&str) -> String,
) -> anyhow::Result<BTreeMap<String, String>> {
    let is_kept = |name: &str| options.keep_env || KEPT.contains(&name);
    // A variable that is not UTF-8 cannot be passed on.
    let own = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut base: BTreeMap<String, String> = own.filter(|(name, _)| is_kept(name)).collect();
    for text in &options.env {
        match text.split_once('=') {
            Some(("", _)) => bail!("--env '{text}': write NAME or NAME=VALUE"),
            Some((name, value)) => base.insert(name.to_owned(), place(value)),
            None => {
                let value =
                    env::var(text).with_context(|| format!("--env {text}: it is not set"))?;
                base.insert(text.clone(), value)
            }
        };
    }
    Ok(base)
}

/// A file is looked for where the command runs that makes it.
fn in_scratch(ready: Ready, scratch: &Path) -> Ready {
    match ready {
        Ready::File(path) => Ready::File(scratch.join(path)),
        other => other,
    }
}

/// The file of a cache.
fn span(cache: &str) -> anyhow::Result<PathBuf> {
    let shown = redacted(cache);
    let url: CacheUrl = cache.parse().with_context(|| format!("--span {shown}"))?;
    match url.levels() {
        [level] if level.scheme() == "file" && level.path().is_empty() => {
            bail!("--span {shown}: it needs an absolute path, as in file:{{scratch}}/cache")
        }
        [level] if level.scheme() == "file" => Ok(PathBuf::from(level.path())),
        _ => bail!("--span {shown}: only counters of a cache in one file can be polled: file:PATH"),
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
