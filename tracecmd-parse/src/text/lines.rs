// SPDX-License-Identifier: GPL-2.0-or-later
//! Lines out of a stream: bounded in length, and taken out of the page or script that they may be in.

use std::io::{self, BufRead, BufReader, Read};

/// No line of a trace comes near; what is longer is passed over.
pub(super) const LINE_MAX: usize = 64 << 10;

/// How a line of a script string of an old systrace page ends: a line break and a continuation, both escaped.
const SCRIPT_END: &[u8] = b"\\n\\";

/// One line, without its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// From 1.
    pub(super) number: u64,
    /// Bytes from the start of the (decompressed) input.
    pub(super) offset: u64,
    pub(super) bytes: &'a [u8],
    pub(super) whole: Whole,
}

/// Whether all of a line is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whole {
    Yes,
    /// Longer than [`LINE_MAX`], hence cut off.
    TooLong,
    /// The input ends without a line break: a number at the end may have lost digits.
    NoEnd,
}

/// Where the reader is in a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nothing but blank lines so far.
    Start,
    /// Not in a page.
    Plain,
    /// In a page, not in trace data.
    Page,
    /// In trace data.
    Data,
}

/// The lines of a trace.
pub(super) struct Lines {
    reader: BufReader<Box<dyn Read + Send>>,
    line: Vec<u8>,
    number: u64,
    offset: u64,
    place: Place,
    /// Whether the input is an html page.
    pub(super) page: bool,
    /// Trace data in the page that are no lines of text.
    pub(super) other_data: Option<String>,
}

impl Lines {
    pub(super) fn new(input: Box<dyn Read + Send>) -> Lines {
        Lines {
            reader: BufReader::with_capacity(256 << 10, input),
            line: Vec::new(),
            number: 0,
            offset: 0,
            place: Place::Start,
            page: false,
            other_data: None,
        }
    }

    /// The next line of trace data; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            let offset = self.offset;
            let Some(whole) = self.read()? else {
                return Ok(None);
            };
            self.number += 1;
            if self.is_data() {
                return Ok(Some(Line { number: self.number, offset, bytes: &self.line, whole }));
            }
        }
    }

    /// Reads into `line`; `None` at the end.
    fn read(&mut self) -> io::Result<Option<Whole>> {
        self.line.clear();
        let mut any = false;
        let mut whole = Whole::NoEnd;
        let mut too_long = false;
        loop {
            let bytes = match self.reader.fill_buf() {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if bytes.is_empty() {
                break;
            }
            any = true;
            let end = bytes.iter().position(|&b| b == b'\n');
            let used = end.map_or(bytes.len(), |at| at + 1);
            let text = &bytes[..end.unwrap_or(used)];
            let room = LINE_MAX - self.line.len();
            too_long |= text.len() > room;
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            self.reader.consume(used);
            self.offset += used as u64;
            if end.is_some() {
                whole = Whole::Yes;
                break;
            }
        }
        if too_long {
            whole = Whole::TooLong;
        }
        if self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        Ok(any.then_some(whole))
    }

    /// Whether `line` is one of the trace; takes it out of a script string.
    fn is_data(&mut self) -> bool {
        if self.place == Place::Start && !self.line.trim_ascii().is_empty() {
            let head = self.line.trim_ascii_start()[..self.line.trim_ascii_start().len().min(16)].to_ascii_lowercase();
            self.page = head.starts_with(b"<!doctype html") || head.starts_with(b"<html");
            self.place = if self.page { Place::Page } else { Place::Plain };
        }
        if self.line.ends_with(SCRIPT_END) {
            self.unescape();
            // The line with the opening `"` of the string, if it holds data, too.
            return self.place != Place::Page || !self.line.trim_ascii_start().starts_with(b"var ");
        }
        match self.place {
            Place::Start | Place::Plain => true,
            Place::Page => {
                self.open_data();
                false
            }
            Place::Data if find(&self.line, b"</script>").is_some() => {
                self.place = Place::Page;
                false
            }
            Place::Data => true,
        }
    }

    /// Looks for the start of trace data in a page.
    fn open_data(&mut self) {
        let Some(at) = find(&self.line, b"class=\"trace-data\"") else {
            return;
        };
        let tag = &self.line[at..];
        let tag = &tag[..find(tag, b">").unwrap_or(tag.len())];
        if find(tag, b"type=\"application/text\"").is_some() {
            if find(&self.line[at..], b"</script>").is_none() {
                self.place = Place::Data;
            }
        } else {
            self.other_data = Some(String::from_utf8_lossy(&tag[..tag.len().min(120)]).into_owned());
        }
    }

    /// Takes the end of a script line away, and the backslashes before quotes.
    fn unescape(&mut self) {
        self.line.truncate(self.line.len() - SCRIPT_END.len());
        let mut escaped = false;
        self.line.retain(|&b| {
            escaped = b == b'\\' && !escaped;
            !escaped
        });
    }
}

/// Where `what` starts in `text`.
pub(super) fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(input: &str) -> Vec<(u64, u64, String)> {
        let mut lines = Lines::new(Box::new(io::Cursor::new(input.as_bytes().to_vec())));
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push((line.number, line.offset, String::from_utf8(line.bytes.to_vec()).unwrap()));
        }
        all
    }

    #[test]
    fn numbers_offsets_and_ends() {
        let expected = vec![(1, 0, "a".to_string()), (2, 3, String::new()), (3, 4, "b".to_string())];
        assert_eq!(lines("a\r\n\nb"), expected);
        assert_eq!(lines("a\r\n\nb\n"), expected);
        assert_eq!(lines(""), vec![]);
    }

    #[test]
    fn long_lines_are_cut() {
        let input = format!("{}\nb\n", "x".repeat(3 * LINE_MAX));
        let mut lines = Lines::new(Box::new(io::Cursor::new(input.into_bytes())));
        let first = lines.next().unwrap().unwrap();
        assert_eq!((first.whole, first.bytes.len()), (Whole::TooLong, LINE_MAX));
        let second = lines.next().unwrap().unwrap();
        assert_eq!((second.bytes, second.whole, second.number), (&b"b"[..], Whole::Yes, 2));
    }

    #[test]
    fn a_page_gives_its_trace_data_only() {
        let page = "<!DOCTYPE html>\n<html><script>var a;</script>\n\
                    <script class=\"trace-data\" type=\"application/text\">\n# tracer: nop\nx\n  </script>\nno\n</html>\n";
        let text: Vec<String> = lines(page).into_iter().map(|(_, _, text)| text).collect();
        assert_eq!(text, ["# tracer: nop", "x"]);
    }

    #[test]
    fn a_script_string_is_unwrapped() {
        let page = "<html>\n<script>\nvar linuxPerfData = \"\\\n# tracer: nop\\n\\\na\\\"b\\\\c\\n\\\n\";\n</script>\n";
        let text: Vec<String> = lines(page).into_iter().map(|(_, _, text)| text).collect();
        assert_eq!(text, ["# tracer: nop", "a\"b\\c"]);
        assert_eq!(lines("x\\n\\\n")[0].2, "x");
    }
}
