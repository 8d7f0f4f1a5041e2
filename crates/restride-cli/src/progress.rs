//! What the command says while it works: on a terminal one line of what it is at and for how long, which is gone when
//! the work is done; where nobody looks, nothing.

use restride::{Error, ErrorKind, Progress, Result};
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Work that is done sooner says nothing.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often the line is written anew.
const TICK: Duration = Duration::from_millis(100);
/// To the start of the line, which is cleared.
const ERASE: &str = "\r\x1b[K";

/// Where a command prints, and what it is at meanwhile.
pub struct Screen {
    /// `None` where nobody looks.
    line: Option<Arc<Line>>,
    thread: Option<JoinHandle<()>>,
}

struct Line {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    out: Box<dyn Write + Send>,
    doing: String,
    /// When this part began, and the work in all.
    since: Instant,
    begun: Instant,
    shown: bool,
    ended: bool,
}

impl State {
    fn erase(&mut self) {
        if std::mem::take(&mut self.shown) {
            // A terminal that is gone is nobody's error.
            let _ = self.out.write_all(ERASE.as_bytes()).and_then(|()| self.out.flush());
        }
    }

    fn draw(&mut self) {
        let line = format!("{ERASE}{} … {:.1} s", self.doing, self.since.elapsed().as_secs_f64());
        let _ = self.out.write_all(line.as_bytes()).and_then(|()| self.out.flush());
        self.shown = true;
    }
}

impl Line {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, doing: String) {
        let mut state = self.state();
        (state.doing, state.since) = (doing, Instant::now());
    }
}

impl Screen {
    /// Says what is going on if somebody looks at standard error.
    pub fn new() -> Screen {
        Screen::on(std::io::stderr().is_terminal().then(|| Box::new(std::io::stderr()) as Box<dyn Write + Send>))
    }

    fn on(out: Option<Box<dyn Write + Send>>) -> Screen {
        let Some(out) = out else { return Screen { line: None, thread: None } };
        let now = Instant::now();
        let state = State { out, doing: "working".into(), since: now, begun: now, shown: false, ended: false };
        let line = Arc::new(Line { state: Mutex::new(state), changed: Condvar::new() });
        let own = line.clone();
        let thread = std::thread::Builder::new().name("progress".into()).spawn(move || {
            let mut state = own.state();
            while !state.ended {
                state = own.changed.wait_timeout(state, TICK).unwrap_or_else(PoisonError::into_inner).0;
                if !state.ended && state.begun.elapsed() >= PATIENCE {
                    state.draw();
                }
            }
        });
        // Without a thread there is no progress to be seen, and nothing else is different.
        Screen { line: Some(line), thread: thread.ok() }
    }

    /// What the command is at from now on.
    pub fn doing(&self, what: impl std::fmt::Display) {
        if let Some(line) = &self.line {
            line.begin(what.to_string());
        }
    }

    /// Hears what the library is at.
    pub fn progress(&self) -> Progress {
        match self.line.clone() {
            Some(line) => Progress::new(move |doing| line.begin(doing.to_string())),
            None => Progress::default(),
        }
    }

    /// A line on standard error that stays.
    pub fn note(&self, text: &str) {
        let _held = self.line.as_ref().map(|line| {
            let mut state = line.state();
            state.erase();
            state
        });
        say(text);
    }

    /// Text on standard output. The work is done then.
    ///
    /// # Errors
    /// Output that cannot be written, such as to a full device. A closed pipe ends the output quietly.
    pub fn print(&self, text: &str) -> Result<()> {
        self.end();
        let mut out = std::io::stdout();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
                Err(Error::new(ErrorKind::File, format!("standard output: {e}")))
            }
            _ => Ok(()),
        }
    }

    fn end(&self) {
        if let Some(line) = &self.line {
            let mut state = line.state();
            state.ended = true;
            state.erase();
            line.changed.notify_all();
        }
    }
}

/// A line on standard error. That it cannot be written is no reason to fail otherwise.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.end();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A terminal that keeps what is written.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Kept {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
        fn wait_for(&self, what: &str) {
            let start = Instant::now();
            while !self.text().contains(what) {
                assert!(start.elapsed() < Duration::from_secs(60), "{what:?} never comes: {:?}", self.text());
                std::thread::sleep(TICK / 10);
            }
        }
    }

    #[test]
    fn long_work_is_shown_and_erased() {
        let kept = Kept::default();
        let screen = Screen::on(Some(Box::new(kept.clone())));
        screen.doing("opening");
        kept.wait_for("opening … 0.");
        screen.doing("reading weights");
        kept.wait_for("reading weights … 0.");
        drop(screen);
        let text = kept.text();
        assert!(text.ends_with(ERASE), "{text:?}");
        // Each line takes the place of the one before; nothing is ever ended by a line break.
        assert!(text.split(ERASE).skip(1).all(|l| l.is_empty() || l.contains(" … ")), "{text:?}");
        assert!(!text.contains('\n'));
    }

    #[test]
    fn short_work_is_not_shown() {
        let kept = Kept::default();
        let begun = Instant::now();
        let screen = Screen::on(Some(Box::new(kept.clone())));
        screen.doing("opening");
        drop(screen);
        // On a machine that stood still meanwhile it was long work.
        assert!(kept.text().is_empty() || begun.elapsed() >= PATIENCE, "{:?}", kept.text());
    }

    #[test]
    fn the_library_is_heard_where_somebody_looks() {
        let kept = Kept::default();
        let screen = Screen::on(Some(Box::new(kept.clone())));
        let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/examples");
        let open = restride::OpenOptions::default();
        let program = restride::open(&examples.join("vit_small.pt2"), &open).expect("the example");
        let inputs = restride::Inputs::from_samples(&program).expect("sample inputs").expect("that can be read");
        let options = restride::CompileOptions { progress: screen.progress(), ..Default::default() };
        let compiled = restride::Compiled::new(program, Some(&inputs), &options).expect("it compiles");
        compiled.prepare(&inputs).expect("a report").report();
        // The last that it does before it could run.
        kept.wait_for("preparing the run … ");
        compiled.instance().unwrap().run(&inputs, &restride::RunOptions::default()).expect("it runs");
        kept.wait_for("running … ");
        drop(screen);
        assert!(format!("{:?}", Screen::on(None).progress()).contains("nobody"));
    }
}
