//! Problems in the user's source, shown as in rustc with file, line, caret and help.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

/// A source file.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// The path for messages, relative to the current folder if possible.
    pub(crate) name: String,
    /// Its text, without a byte order mark.
    pub(crate) text: String,
}

/// A range of bytes in one of the crate's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    /// Index of the file.
    pub(crate) file: usize,
    /// Bytes of its text.
    pub(crate) range: Range<usize>,
}

/// An error or a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    is_warning: bool,
    id: Option<&'static str>,
    message: String,
    location: Option<Location>,
    label: String,
    related: Vec<(Location, String)>,
    help: Vec<String>,
}

impl Problem {
    /// An error with this title: lower case, no full stop.
    pub(crate) fn error(message: impl Into<String>) -> Problem {
        Problem {
            is_warning: false,
            id: None,
            message: message.into(),
            location: None,
            label: String::new(),
            related: Vec::new(),
            help: Vec::new(),
        }
    }

    /// A warning.
    pub(crate) fn warning(message: impl Into<String>) -> Problem {
        Problem {
            is_warning: true,
            ..Problem::error(message)
        }
    }

    /// Sets the error's id, the same as in the macros.
    pub(crate) fn id(mut self, id: &'static str) -> Problem {
        self.id = Some(id);
        self
    }

    /// Sets the location of the caret.
    pub(crate) fn at(mut self, location: Location) -> Problem {
        self.location = Some(location);
        self
    }

    /// Sets the text beside the caret.
    pub(crate) fn label(mut self, label: impl Into<String>) -> Problem {
        self.label = label.into();
        self
    }

    /// Adds another relevant location.
    pub(crate) fn related(mut self, location: Location, label: impl Into<String>) -> Problem {
        self.related.push((location, label.into()));
        self
    }

    /// Adds advice.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Problem {
        self.help.push(help.into());
        self
    }

    /// The location as a sort key; problems without a location come first.
    fn order(&self) -> Option<(usize, usize)> {
        self.location
            .as_ref()
            .map(|location| (location.file, location.range.start))
    }
}

/// Renders every problem in source order, each once, followed by an empty line.
pub(crate) fn render(problems: &[Problem], files: &[SourceFile], color: bool) -> String {
    let renderer = if color {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let mut sorted: Vec<&Problem> = problems.iter().collect();
    sorted.sort_by_key(|problem| problem.order());
    sorted.dedup();
    let mut text = String::new();
    for problem in sorted {
        text.push_str(&render_one(problem, files, &renderer));
        text.push_str("\n\n");
    }
    text
}

fn render_one(problem: &Problem, files: &[SourceFile], renderer: &Renderer) -> String {
    let level = if problem.is_warning {
        Level::WARNING
    } else {
        Level::ERROR
    };
    let mut title = level.primary_title(problem.message.as_str());
    if let Some(id) = problem.id {
        title = title.id(id);
    }
    let mut group = Group::with_title(title);
    if let Some(location) = &problem.location {
        let mut snippet = snippet(location, AnnotationKind::Primary, &problem.label, files);
        let (same, other): (Vec<_>, Vec<_>) = problem
            .related
            .iter()
            .partition(|(related, _)| related.file == location.file);
        for (related, label) in same {
            let range = clamp(&related.range, files[related.file].text.len());
            snippet = snippet.annotation(AnnotationKind::Context.span(range).label(label.as_str()));
        }
        group = group.element(snippet);
        for (related, label) in other {
            group = group.element(self::snippet(
                related,
                AnnotationKind::Context,
                label,
                files,
            ));
        }
    }
    for help in &problem.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    renderer.render(&[group])
}

fn snippet<'a>(
    location: &Location,
    kind: AnnotationKind,
    label: &'a str,
    files: &'a [SourceFile],
) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
    let file = &files[location.file];
    let mut annotation = kind.span(clamp(&location.range, file.text.len()));
    if !label.is_empty() {
        annotation = annotation.label(label);
    }
    Snippet::source(file.text.as_str())
        .path(file.name.as_str())
        .annotation(annotation)
}

/// Moves a location behind the end of the text to its end, where errors at the end of the input point.
fn clamp(range: &Range<usize>, len: usize) -> Range<usize> {
    range.start.min(len)..range.end.min(len)
}
