//! Where a command's tables, notes, errors and data go: standard output, standard error, files, and a progress bar on a terminal.

use crate::Failure;
use crate::args::ScreenArgs;
use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use restride::{Error, ErrorKind, Progress};
use std::cell::OnceCell;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Failure>;

/// Work that is done sooner shows no progress.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the progress bar moves.
const TICK: Duration = Duration::from_millis(100);

/// A table's heading.
pub const HEAD: Style = Style::new().bold();
/// The word `ok` and its like.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// The word before a problem.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// The word before a note or advice.
const NOTE: Style = AnsiColor::Cyan.on_default().bold();

/// Text in a style.
pub fn styled(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Whether a path stands for standard input or output.
pub fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The terminal, pipes and files of a command.
pub struct Screen {
    work: WorkShown,
    /// Shows no progress bar once this is dropped.
    waiting: Option<Sender<()>>,
    quiet: bool,
    /// Standard output carries data: tables go to standard error.
    data: bool,
    /// Files that stand for standard input and output; removed at the end.
    spool: OnceCell<Spool>,
    /// The file with the bytes of standard input.
    stdin: OnceCell<PathBuf>,
}

/// The part of the work that is under way.
#[derive(Clone)]
struct WorkShown {
    bar: ProgressBar,
    /// With `--verbose`: the part's name and beginning.
    part: Option<Arc<Mutex<Option<(String, Instant)>>>>,
}

impl WorkShown {
    fn begin(&self, part: Option<String>) {
        if let Some(part) = &part {
            self.bar.set_message(part.clone());
        }
        let Some(told) = &self.part else { return };
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        let next = part.map(|p| (p, Instant::now()));
        if let Some((name, since)) = std::mem::replace(&mut *told, next) {
            self.bar.suspend(|| say(&format!("{name}: {:.1} ms", since.elapsed().as_secs_f64() * 1e3)));
        }
    }
}

impl Screen {
    /// The screen of a command that writes data to standard output or not.
    pub fn new(args: &ScreenArgs, data: bool) -> Screen {
        let shown = !args.quiet && std::io::stderr().is_terminal();
        Screen::on(shown.then(ProgressDrawTarget::stderr), args, data)
    }

    fn on(target: Option<ProgressDrawTarget>, args: &ScreenArgs, data: bool) -> Screen {
        let style = ProgressStyle::with_template("{spinner:.cyan} {msg} ({elapsed})").expect("a template");
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()).with_style(style);
        let waiting = target.map(|target| {
            let (waiting, end) = channel();
            let bar = bar.clone();
            std::thread::spawn(move || {
                if end.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                    bar.set_draw_target(target);
                    bar.enable_steady_tick(TICK);
                }
            });
            waiting
        });
        let work = WorkShown { bar, part: args.verbose.then(Arc::default) };
        Screen { work, waiting, quiet: args.quiet, data, spool: OnceCell::new(), stdin: OnceCell::new() }
    }

    /// Names the part of the work that begins.
    pub fn doing(&self, part: impl std::fmt::Display) {
        self.work.begin(Some(part.to_string()));
    }

    /// A listener for the parts of the library's work.
    pub fn progress(&self) -> Progress {
        let work = self.work.clone();
        Progress::new(move |doing| work.begin(Some(doing.to_string())))
    }

    /// Prints a note on standard error.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            self.work.bar.suspend(|| say(&format!("{}: {}", styled(NOTE, "note"), one_line(text))));
        }
    }

    /// Prints a line on standard error if `--verbose` is given.
    pub fn detail(&self, text: &str) {
        if self.work.part.is_some() {
            self.work.bar.suspend(|| say(&one_line(text)));
        }
    }

    /// Prints a table: on standard output, or on standard error where standard output carries data.
    pub fn print(&self, text: &str) -> Result<()> {
        self.end();
        if self.quiet {
            return Ok(());
        }
        if self.data {
            let _ = anstream::stderr().write_all(text.as_bytes());
            return Ok(());
        }
        written(AutoStream::auto(std::io::stdout()), text.as_bytes())
    }

    /// Prints data on standard output as it is. A closed pipe ends it quietly.
    ///
    /// # Errors
    /// Output that cannot be written, such as to a full device.
    pub fn result(&self, data: &[u8]) -> Result<()> {
        self.end();
        written(std::io::stdout(), data)
    }

    /// Writes text to a file, or to standard output for `-`.
    pub fn write_text(&self, path: &Path, text: &str) -> Result<()> {
        if is_dash(path) {
            return self.result(text.as_bytes());
        }
        std::fs::write(path, text).map_err(|e| file_error(&path.display(), &e))
    }

    /// Lets `write` write a file: the one at the path, or one whose bytes then go to standard output for `-`.
    pub fn write_file(&self, path: &Path, name: &str, write: impl FnOnce(&Path) -> restride::Result<()>) -> Result<()> {
        if !is_dash(path) {
            return Ok(write(path)?);
        }
        let file = self.spool()?.join(name);
        write(&file)?;
        self.result(&std::fs::read(&file).map_err(|e| file_error(&file.display(), &e))?)
    }

    /// The file to read: the one at the path, or for `-` one with the bytes of standard input, with an extension by content.
    pub fn read_file(&self, path: &Path, extension: impl FnOnce(&[u8]) -> &'static str) -> Result<PathBuf> {
        if !is_dash(path) {
            return Ok(path.to_path_buf());
        }
        // Standard input gives its bytes once; one command may ask for them twice.
        if let Some(file) = self.stdin.get() {
            return Ok(file.clone());
        }
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map_err(|e| file_error(&"standard input", &e))?;
        let file = self.spool()?.join(format!("stdin.{}", extension(&bytes)));
        std::fs::write(&file, bytes).map_err(|e| file_error(&file.display(), &e))?;
        Ok(self.stdin.get_or_init(|| file).clone())
    }

    fn spool(&self) -> Result<&Path> {
        if self.spool.get().is_none() {
            let _ = self.spool.set(Spool::new().map_err(|e| file_error(&"the directory of temporary files", &e))?);
        }
        Ok(&self.spool.get().expect("set above").0)
    }

    /// Prints why a command failed: the message, the node and its source line, advice.
    pub fn fail(&self, failure: &Failure) {
        self.end();
        let stdin = self.stdin.get().map(|f| f.display().to_string());
        let plain = |text: &str| match &stdin {
            Some(file) => one_line(&text.replace(file, "standard input")),
            None => one_line(text),
        };
        let (what, help) = match failure {
            Failure::Error(e) => (&e.what, e.help.as_deref()),
            Failure::Usage(what, help) => (what, Some(help.as_str())),
        };
        let mut out = format!("{}: {}", styled(BAD, "error"), plain(what));
        if let Failure::Error(Error { node: Some(node), source, code, .. }) = failure {
            let place = source.as_ref().map_or(String::new(), |s| format!("{s}: "));
            out += &format!("\n {} {}", styled(NOTE, "-->"), plain(&format!("{place}{node}")));
            if let Some(code) = code {
                out += &format!("\n  {} {}", styled(NOTE, "|"), plain(code));
            }
        }
        if let Some(help) = help.filter(|h| !h.is_empty()) {
            out += &format!("\n{}: {}", styled(NOTE, "help"), plain(help));
        }
        say(&out);
    }

    fn end(&self) {
        self.work.begin(None);
        self.work.bar.finish_and_clear();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.waiting = None;
        self.end();
    }
}

/// A directory of temporary files.
struct Spool(PathBuf);

impl Spool {
    fn new() -> std::io::Result<Spool> {
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        let nanos = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |d| d.subsec_nanos());
        let path = std::env::temp_dir().join(format!("restride-{}-{nanos}", std::process::id()));
        // Fails where the name is taken.
        builder.create(&path)?;
        Ok(Spool(path))
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn written(mut out: impl Write, data: &[u8]) -> Result<()> {
    match out.write_all(data).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(file_error(&"standard output", &e)),
        _ => Ok(()),
    }
}

fn file_error(place: &dyn std::fmt::Display, e: &std::io::Error) -> Failure {
    Error::new(ErrorKind::File, format!("{place}: {e}")).into()
}

/// Prints a line on standard error. A failure to write it changes nothing.
pub fn say(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Text from a file as one line without control characters.
fn one_line(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    clean.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ColorChoice;
    use indicatif::TermLike;

    /// A terminal that keeps the text that it is given.
    #[derive(Clone, Default, Debug)]
    struct Kept(Arc<Mutex<String>>);

    impl TermLike for Kept {
        fn width(&self) -> u16 {
            80
        }
        fn move_cursor_up(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn write_line(&self, s: &str) -> std::io::Result<()> {
            self.write_str(s)
        }
        fn write_str(&self, s: &str) -> std::io::Result<()> {
            self.0.lock().unwrap().push_str(s);
            Ok(())
        }
        fn clear_line(&self) -> std::io::Result<()> {
            self.write_str("<clear>")
        }
        fn flush(&self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Kept {
        fn screen(&self) -> Screen {
            let args = ScreenArgs { quiet: false, verbose: false, color: ColorChoice::Never };
            Screen::on(Some(ProgressDrawTarget::term_like(Box::new(self.clone()))), &args, false)
        }
        fn text(&self) -> String {
            self.0.lock().unwrap().clone()
        }
        fn wait_for(&self, text: &str) {
            let start = Instant::now();
            while !self.text().contains(text) {
                assert!(start.elapsed() < Duration::from_secs(60), "{text:?} never comes: {:?}", self.text());
                std::thread::sleep(TICK / 10);
            }
        }
    }

    #[test]
    fn long_work_is_shown_and_erased() {
        let kept = Kept::default();
        let screen = kept.screen();
        screen.doing("opening");
        kept.wait_for("opening (1s)");
        screen.doing("reading weights");
        kept.wait_for("reading weights (");
        drop(screen);
        assert!(kept.text().trim_end().ends_with("<clear>"), "{:?}", kept.text());
    }

    #[test]
    fn short_work_is_not_shown() {
        let kept = Kept::default();
        let begun = Instant::now();
        let screen = kept.screen();
        screen.doing("opening");
        drop(screen);
        // A machine that stood still meanwhile made it long work.
        assert!(!kept.text().contains("opening") || begun.elapsed() >= PATIENCE, "{:?}", kept.text());
    }

    #[test]
    fn the_bar_names_the_parts_of_the_library_s_work() {
        let kept = Kept::default();
        let screen = kept.screen();
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/examples");
        let program = restride::open(&examples.join("vit_small.pt2"), &Default::default()).expect("the example");
        let inputs = restride::Inputs::from_samples(&program).expect("sample inputs").expect("that can be read");
        let options = restride::CompileOptions { progress: screen.progress(), ..Default::default() };
        let compiled = restride::Compiled::new(program, Some(&inputs), &options).expect("it compiles");
        compiled.prepare(&inputs).expect("it is placed");
        // The last part before a run.
        kept.wait_for("preparing the run (");
        compiled.instance().unwrap().run(&inputs, &restride::RunOptions::default()).expect("it runs");
        kept.wait_for("running (");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(one_line("a\u{1b}[31mb\n\tc\u{7f}"), "a [31mb c");
    }
}
