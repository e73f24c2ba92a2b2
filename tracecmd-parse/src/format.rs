// SPDX-License-Identifier: GPL-2.0-or-later
//! Event formats: the `format` files of tracefs, as they are stored in the trace.
//!
//! **Source**: `f_show()`, `__trace_define_field()` in kernel/trace/trace_events.c.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::bytes::Endian;
use crate::error::Error;
use crate::field::{FieldRef, RawEvent};
use crate::flags::evaluate;

/// Where the bytes of a field are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldKind {
    /// One value at the field's offset.
    Scalar,
    /// A fixed array of this many elements (0: to the end of the event).
    Array {
        /// Number of elements, 0 if the event's end is the array's end.
        len: u32,
    },
    /// `__data_loc`: a 4-byte word, offset from the start of the event in the
    /// low half, length in bytes in the high half.
    DataLoc,
    /// `__rel_loc`: the same, the offset counted from the end of the word.
    RelLoc,
}

/// One field of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// `prev_pid`.
    pub name: String,
    /// The declaration without the name: `pid_t`, `char[16]`, `__data_loc char[]`.
    pub type_text: String,
    /// Bytes from the start of the event.
    pub offset: u32,
    /// Bytes that the field (not the data it points to) takes.
    pub size: u32,
    /// Whether the elements are signed.
    pub signed: bool,
    /// Scalar, array or a pointer to data at the end of the event.
    pub kind: FieldKind,
}

/// The format of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFormat {
    /// The number in `common_type` of its events.
    pub id: u16,
    /// `sched`, `irq`, `ftrace`, ...
    pub system: String,
    /// `sched_switch`.
    pub name: String,
    /// Common fields first, as in the format text.
    pub fields: Vec<Field>,
    /// What stands after `print fmt:`.
    pub print_fmt: String,
    pub(crate) endian: Endian,
}

impl EventFormat {
    /// Reads one `format` file.
    ///
    /// # Errors
    /// A `String` that says which line was not understood.
    pub fn parse(system: &str, text: &str, endian: Endian) -> Result<EventFormat, String> {
        let mut name = None;
        let mut id = None;
        let mut fields = Vec::new();
        let mut print_fmt = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
            let line = line.trim();
            if let Some(value) = line.strip_prefix("name:") {
                name = Some(value.trim().to_string());
            } else if let Some(value) = line.strip_prefix("ID:") {
                let number: u16 =
                    value.trim().parse().map_err(|_| format!("ID is not a number of 16 bits: {:?}", value.trim()))?;
                id = Some(number);
            } else if line.starts_with("field") {
                fields.push(Field::parse(line)?);
            } else if line.starts_with("print fmt:") {
                // The print format is the last thing in the file and may hold line breaks.
                let rest = rest.trim_start();
                print_fmt = rest.strip_prefix("print fmt:").unwrap_or(rest).trim().to_string();
                break;
            }
            rest = after;
        }
        Ok(EventFormat {
            id: id.ok_or("no ID line")?,
            system: system.to_string(),
            name: name.filter(|n| !n.is_empty()).ok_or("no name line")?,
            fields,
            print_fmt,
            endian,
        })
    }

    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|f| f.name == name)
    }

    /// The field of that name, ready to be read from events.
    ///
    /// # Errors
    /// [`Error::NoField`] with the names there are.
    pub fn field_ref(&self, name: &str) -> Result<FieldRef, Error> {
        match self.field(name) {
            Some(field) => Ok(FieldRef::new(field, self.endian)),
            None => Err(Error::NoField {
                event: format!("{}:{}", self.system, self.name),
                wanted: name.to_string(),
                have: self.fields.iter().map(|f| f.name.as_str()).collect::<Vec<_>>().join(", "),
            }),
        }
    }
}

impl Field {
    /// Reads `field:int prev_prio; offset:28; size:4; signed:1;`.
    fn parse(line: &str) -> Result<Field, String> {
        let bad = |why: &str| format!("{why} in {line:?}");
        let (_, rest) = line.split_once(':').ok_or_else(|| bad("no ':'"))?;
        let (declaration, rest) = rest.split_once(';').ok_or_else(|| bad("no ';'"))?;
        let [offset, size, signed] = numbers(rest, ["offset", "size", "signed"]);
        let offset = offset.ok_or_else(|| bad("no offset"))?;
        let size = size.ok_or_else(|| bad("no size"))?;
        offset.checked_add(size).ok_or_else(|| bad("offset and size too large"))?;
        let (name, type_text) = split_declaration(declaration.trim());
        if name.is_empty() {
            return Err(bad("no field name"));
        }
        let count = |wanted: u8| type_text.bytes().filter(|&byte| byte == wanted).count();
        if count(b'[') != count(b']') || count(b'(') != count(b')') {
            return Err(bad("brackets that do not match"));
        }
        let kind = field_kind(&type_text, size);
        let signed = match signed {
            Some(value) => value != 0,
            None => !type_text.contains("unsigned") && !type_text.contains('*'),
        };
        Ok(Field { name, type_text, offset, size, signed, kind })
    }
}

/// The numbers of those names in `offset:28; size:4; signed:1;`.
fn numbers<const N: usize>(text: &str, names: [&str; N]) -> [Option<u32>; N] {
    let mut found = [None; N];
    for part in text.split(';') {
        let Some((name, value)) = part.trim().split_once(':') else { continue };
        if let Some(at) = names.iter().position(|&wanted| wanted == name) {
            found[at] = found[at].or_else(|| value.trim().parse().ok());
        }
    }
    found
}

/// `char comm[16]` → (`comm`, `char[16]`); `__data_loc char[] name` → (`name`, `__data_loc char[]`).
fn split_declaration(declaration: &str) -> (String, String) {
    let (body, brackets) = match declaration.strip_suffix(']').and_then(|d| d.rfind('[')) {
        Some(at) => declaration.split_at(at),
        None => (declaration, ""),
    };
    let body = body.trim_end();
    let ident = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.' || c == '-';
    // `void (*func)(int)`: the name is inside the first parentheses.
    if body.contains('(')
        && let Some((before, after)) = body.split_once("(*")
    {
        let name: String = after.trim_start().chars().take_while(|&c| ident(c)).collect();
        let tail = &after.trim_start()[name.len()..];
        return (name, format!("{before}(*{tail}{brackets}"));
    }
    let at = body.rfind(|c| !ident(c)).map_or(0, |at| at + body[at..].chars().next().map_or(1, char::len_utf8));
    let (type_part, name) = body.split_at(at);
    (name.to_string(), [type_part.trim_end(), brackets].concat())
}

fn field_kind(type_text: &str, size: u32) -> FieldKind {
    if type_text.starts_with("__data_loc") {
        return FieldKind::DataLoc;
    }
    if type_text.starts_with("__rel_loc") {
        return FieldKind::RelLoc;
    }
    // `char buf[]`, in old kernels `char buf`: what is left of the event.
    if size == 0 {
        return FieldKind::Array { len: 0 };
    }
    let Some((element, count)) = type_text.strip_suffix(']').and_then(|t| t.rsplit_once('[')) else {
        return FieldKind::Scalar;
    };
    // The count may be a sum (`32 + 2`) or a name (`TASK_COMM_LEN`); of a name the
    // element's own size tells.
    let count = evaluate(count).and_then(|count| u32::try_from(count).ok());
    let len = count.filter(|&len| len > 0).unwrap_or_else(|| {
        let element = element.trim();
        let bytes = element.ends_with("char") || matches!(element, "u8" | "__u8" | "s8" | "__s8");
        if bytes { size } else { 1 }
    });
    FieldKind::Array { len }
}

/// The fields at the head of every event.
///
/// 8 bytes in mainline, 12 in RT and vendor kernels that add to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommonFields {
    /// `common_type`: the event's id.
    pub common_type: FieldRef,
    /// `common_flags`: irqs-off, need-resched, hardirq, softirq bits.
    pub common_flags: FieldRef,
    /// `common_preempt_count`.
    pub common_preempt_count: FieldRef,
    /// `common_pid`: pid of the task in whose context the event was written.
    pub common_pid: FieldRef,
}

/// Bounds on what is kept of texts that are not understood.
const SKIPPED_MAX: usize = 1000;
const SKIPPED_TEXT_MAX: usize = 300;

/// All event formats of a trace.
#[derive(Debug, Clone)]
pub struct Formats {
    events: Vec<Arc<EventFormat>>,
    by_id: BTreeMap<u16, usize>,
    by_name: BTreeMap<(String, String), usize>,
    skipped: Vec<String>,
    common: Option<CommonFields>,
    endian: Endian,
}

impl Formats {
    /// An empty set for a file of this byte order.
    pub fn new(endian: Endian) -> Formats {
        Formats {
            events: Vec::new(),
            by_id: BTreeMap::new(),
            by_name: BTreeMap::new(),
            skipped: Vec::new(),
            common: None,
            endian,
        }
    }

    /// Adds the event of one `format` file. A text that is not understood, or an
    /// id that is taken, is noted in [`Formats::skipped`]: one bad event must not
    /// make the others unreadable.
    pub fn add(&mut self, system: &str, text: &str) {
        match EventFormat::parse(system, text, self.endian) {
            Ok(event) => self.add_format(event),
            Err(why) => self.skip(format!("{system}: {why}")),
        }
    }

    fn skip(&mut self, mut why: String) {
        if self.skipped.len() < SKIPPED_MAX {
            if why.len() > SKIPPED_TEXT_MAX {
                why = why.chars().take(SKIPPED_TEXT_MAX).chain("...".chars()).collect();
            }
            self.skipped.push(why);
        }
    }

    /// Adds a format that was read already. An id that is taken is noted in [`Formats::skipped`].
    pub fn add_format(&mut self, event: EventFormat) {
        if let Some(&other) = self.by_id.get(&event.id) {
            let other = &self.events[other];
            if other.system != event.system || other.name != event.name {
                let why = format!(
                    "{}:{}: id {} belongs to {}:{}",
                    event.system, event.name, event.id, other.system, other.name
                );
                self.skip(why);
            }
            return;
        }
        if let Some(common) = common_fields(&event) {
            match self.common {
                None => self.common = Some(common),
                Some(first) if first.common_type != common.common_type => {
                    return self.skip(format!(
                        "{}:{}: common_type is at another place than in the events before",
                        event.system, event.name
                    ));
                }
                Some(_) => {}
            }
        }
        let at = self.events.len();
        self.by_id.insert(event.id, at);
        self.by_name.insert((event.system.clone(), event.name.clone()), at);
        self.events.push(Arc::new(event));
    }

    /// The event of that id.
    pub fn by_id(&self, id: u16) -> Option<&EventFormat> {
        self.by_id.get(&id).map(|&at| &*self.events[at])
    }

    /// The event of that name.
    pub fn by_name(&self, system: &str, name: &str) -> Option<&EventFormat> {
        self.by_name.get(&(system.to_string(), name.to_string())).map(|&at| &*self.events[at])
    }

    /// The event of that name.
    ///
    /// # Errors
    /// [`Error::NoEvent`].
    pub fn event(&self, system: &str, name: &str) -> Result<&EventFormat, Error> {
        self.by_name(system, name).ok_or_else(|| Error::NoEvent { wanted: format!("{system}:{name}") })
    }

    /// All events of that name whatever their system, by system.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a EventFormat> + 'a {
        self.by_name.iter().filter(move |((_, n), _)| n == name).map(|(_, &at)| &*self.events[at])
    }

    /// All events, by id.
    pub fn iter(&self) -> impl Iterator<Item = &EventFormat> {
        self.by_id.values().map(|&at| &*self.events[at])
    }

    /// The bytes that an event of each id takes at least; `u16::MAX` for an id without a format.
    pub(crate) fn least(&self) -> Vec<u16> {
        let mut least = vec![u16::MAX; 1 << 16];
        for event in self.iter() {
            // The tracers' own events have arrays that are shorter than declared.
            let fields = event.fields.iter().filter(|_| event.system != "ftrace");
            let size = fields.map(|field| field.offset + field.size).max().unwrap_or(0);
            least[usize::from(event.id)] = u16::try_from(size).unwrap_or(0);
        }
        least
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Format texts that were not understood, one sentence each; the first
    /// thousand of them.
    pub fn skipped(&self) -> &[String] {
        &self.skipped
    }

    /// The common fields, if any event has them.
    pub fn common(&self) -> Option<&CommonFields> {
        self.common.as_ref()
    }

    /// The event's format, by its id.
    pub fn of(&self, event: &RawEvent<'_>) -> Option<&EventFormat> {
        self.by_id(event.id)
    }
}

fn common_fields(event: &EventFormat) -> Option<CommonFields> {
    let get = |name| Some(FieldRef::new(event.field(name)?, event.endian));
    Some(CommonFields {
        common_type: get("common_type")?,
        common_flags: get("common_flags")?,
        common_preempt_count: get("common_preempt_count")?,
        common_pid: get("common_pid")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &str = "name: sched_switch\nID: 316\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\n\
        print fmt: \"prev_pid=%d\", REC->prev_pid\n";

    fn field(line: &str) -> Field {
        Field::parse(line).unwrap()
    }

    #[test]
    fn a_format_file() {
        let event = EventFormat::parse("sched", SWITCH, Endian::Little).unwrap();
        assert_eq!((event.id, event.name.as_str(), event.fields.len()), (316, "sched_switch", 6));
        assert_eq!(event.print_fmt, "\"prev_pid=%d\", REC->prev_pid");
        let comm = event.field("prev_comm").unwrap();
        assert_eq!((comm.type_text.as_str(), comm.offset, comm.size), ("char[16]", 8, 16));
        assert_eq!(comm.kind, FieldKind::Array { len: 16 });
        let error = event.field_ref("next_pid").unwrap_err().to_string();
        assert!(error.starts_with("event sched:sched_switch has no field next_pid; it has common_type"), "{error}");
    }

    #[test]
    fn declarations() {
        for (declaration, name, type_text, kind) in [
            ("int prev_prio", "prev_prio", "int", FieldKind::Scalar),
            ("const char * ptr", "ptr", "const char *", FieldKind::Scalar),
            ("const char *ptr", "ptr", "const char *", FieldKind::Scalar),
            ("__data_loc char[] name", "name", "__data_loc char[]", FieldKind::DataLoc),
            ("__rel_loc char[] name", "name", "__rel_loc char[]", FieldKind::RelLoc),
            ("void (*func)(struct x *)", "func", "void (*)(struct x *)", FieldKind::Scalar),
            ("unsigned long args[6]", "args", "unsigned long[6]", FieldKind::Array { len: 6 }),
            ("__u8 buf[4 + 4]", "buf", "__u8[4 + 4]", FieldKind::Array { len: 8 }),
            ("char comm[TASK_COMM_LEN]", "comm", "char[TASK_COMM_LEN]", FieldKind::Array { len: 8 }),
            ("struct sock * sk", "sk", "struct sock *", FieldKind::Scalar),
        ] {
            let field = field(&format!("field:{declaration};\toffset:8;\tsize:8;\tsigned:0;"));
            assert_eq!((field.name.as_str(), field.type_text.as_str(), field.kind), (name, type_text, kind));
        }
        let rest = FieldKind::Array { len: 0 };
        assert_eq!(field("field:char buf[];\toffset:16;\tsize:0;\tsigned:0;").kind, rest);
        assert_eq!(field("field:char buf;\toffset:16;\tsize:0;\tsigned:0;").kind, rest);
        assert_eq!(field("field special:char comm[16];\toffset:8;\tsize:16;").name, "comm");
    }

    #[test]
    fn without_signed_the_type_decides() {
        assert!(field("field:int a;\toffset:0;\tsize:4;").signed);
        assert!(!field("field:unsigned int a;\toffset:0;\tsize:4;").signed);
    }

    #[test]
    fn text_that_is_not_a_format_is_refused_with_the_line() {
        for text in [
            "",
            "name: x\n",
            "ID: 1\n",
            "name: x\nID: 70000\n",
            "name: x\nID: one\n",
            "name: x\nID: 1\nformat:\n\tfield:int a\n",
            "name: x\nID: 1\nformat:\n\tfield:int a;\toffset:x;\tsize:4;\n",
            "name: x\nID: 1\nformat:\n\tfield:int a;\toffset:4294967295;\tsize:4;\n",
            "name: x\nID: 1\nformat:\n\tfield:;\toffset:0;\tsize:4;\n",
        ] {
            assert!(EventFormat::parse("s", text, Endian::Little).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_bad_format_is_skipped_and_told() {
        let mut formats = Formats::new(Endian::Little);
        formats.add("sched", "nonsense");
        formats.add("sched", SWITCH);
        formats.add("sched", SWITCH);
        formats.add("other", &SWITCH.replace("sched_switch", "impostor"));
        formats.add(
            "other",
            &SWITCH.replace("ID: 316", "ID: 7").replace("common_type;\toffset:0", "common_type;\toffset:2"),
        );
        assert_eq!((formats.len(), formats.skipped().len()), (1, 3), "{:?}", formats.skipped());
        assert_eq!(formats.by_id(316).unwrap().name, "sched_switch");
        assert_eq!(formats.common().unwrap().common_pid.offset(), 4);
        assert!(formats.event("sched", "sched_wakeup").is_err());
        assert_eq!(formats.named("sched_switch").count(), 1);
    }

    #[test]
    fn the_common_header_may_be_longer() {
        let long = SWITCH.replace("offset:8;", "offset:12;").replace(
            "signed:1;\n\n\tfield:char",
            "signed:1;\n\tfield:unsigned char common_migrate_disable;\toffset:8;\tsize:1;\tsigned:0;\n\n\tfield:char",
        );
        let mut formats = Formats::new(Endian::Little);
        formats.add("sched", &long);
        let event = formats.event("sched", "sched_switch").unwrap();
        assert_eq!(event.field("prev_comm").unwrap().offset, 12);
        assert_eq!(event.fields[4].name, "common_migrate_disable");
    }

    #[test]
    fn a_format_written_as_text_is_read_again() {
        let mut text = SWITCH.to_string();
        for line in [
            "\tfield:__data_loc char[] name;\toffset:28;\tsize:4;\tsigned:1;\n",
            "\tfield:const char * ptr;\toffset:32;\tsize:8;\tsigned:0;\n",
            "\tfield:void (*func)(int);\toffset:40;\tsize:8;\tsigned:0;\n",
            "\tfield:char buf[];\toffset:48;\tsize:0;\tsigned:0;\n",
        ] {
            text = text.replace("\nprint fmt", &format!("{line}\nprint fmt"));
        }
        let event = EventFormat::parse("sched", &text, Endian::Big).unwrap();
        assert_eq!(event.fields.len(), 10);
        assert_eq!(EventFormat::parse("sched", &event.to_text(), Endian::Big).unwrap(), event);
    }
}
