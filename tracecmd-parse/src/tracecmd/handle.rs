// SPDX-License-Identifier: GPL-2.0-or-later
//! Safe owners of what the C library hands out.
//!
//! A handle belongs to one thread: the library keeps state of its own beside it. The pointers inside make these
//! types neither `Send` nor `Sync`.

use std::ffi::{CStr, CString, c_char, c_int};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;

use crate::bytes::Endian;
use crate::flags::evaluate;
use crate::format::{EventFormat, Field, FieldKind};

use super::ffi::{self, Api};
use super::print;

/// An open trace, or one buffer of it.
pub(super) struct Handle {
    api: &'static Api,
    raw: NonNull<ffi::Input>,
}

impl Handle {
    /// Opens a trace.dat; `None` if the library refuses it. It says why on stderr, if at all.
    pub(super) fn open(api: &'static Api, path: &Path) -> Option<Handle> {
        let path = CString::new(path.as_os_str().as_bytes()).ok()?;
        // SAFETY: takes a number.
        unsafe { (api.set_loglevel)(ffi::LOG_WARNING) };
        // SAFETY: `path` is a C string that lives through the call; the library copies nothing from it.
        let raw = unsafe { (api.open)(path.as_ptr(), ffi::LOAD_NO_PLUGINS) };
        Some(Handle { api, raw: NonNull::new(raw)? })
    }

    /// The instances (buffers beside the top one), by index.
    pub(super) fn instances(&self) -> Vec<Vec<u8>> {
        // SAFETY: the handle is open.
        let count = unsafe { (self.api.buffer_instances)(self.raw.as_ptr()) };
        (0..count)
            .map(|at| {
                // SAFETY: the handle is open and the index is below the number of instances; the name belongs to
                // the handle and is copied before anything else is asked of it.
                unsafe { bytes_of((self.api.buffer_instance_name)(self.raw.as_ptr(), at)) }.unwrap_or_default()
            })
            .collect()
    }

    /// The instance of that index as a handle of its own.
    pub(super) fn instance(&self, at: usize) -> Option<Handle> {
        // SAFETY: the handle is open; the library checks the index. The new handle counts a reference to this one,
        // so their order of closing does not matter.
        let raw = unsafe { (self.api.buffer_instance_handle)(self.raw.as_ptr(), c_int::try_from(at).ok()?) };
        Some(Handle { api: self.api, raw: NonNull::new(raw)? })
    }

    fn tep(&self) -> *mut ffi::Tep {
        // SAFETY: the handle is open.
        unsafe { (self.api.get_tep)(self.raw.as_ptr()) }
    }

    /// Number of CPU buffers: indices below it can be given to [`Handle::read`].
    pub(super) fn cpus(&self) -> usize {
        let cpus = match self.api.cpus {
            // SAFETY: the handle is open.
            Some(cpus) => unsafe { cpus(self.raw.as_ptr()) },
            // SAFETY: the parser lives as long as its handle.
            None => unsafe { (self.api.tep_get_cpus)(self.tep()) },
        };
        usize::try_from(cpus).unwrap_or(0)
    }

    /// Byte order of the recorded machine.
    pub(super) fn endian(&self) -> Endian {
        // SAFETY: the parser lives as long as its handle.
        if unsafe { (self.api.tep_is_file_bigendian)(self.tep()) } { Endian::Big } else { Endian::Little }
    }

    /// Bytes of a page, of a `long`, and of a page's commit word.
    pub(super) fn sizes(&self) -> [u32; 3] {
        let tep = self.tep();
        // SAFETY: the parser lives as long as its handle.
        let sizes = unsafe {
            [
                (self.api.tep_get_page_size)(tep),
                (self.api.tep_get_long_size)(tep),
                (self.api.tep_get_header_page_size)(tep),
            ]
        };
        sizes.map(|size| u32::try_from(size).unwrap_or(0))
    }

    /// The `uname` text, if the library gives it.
    pub(super) fn uname(&self) -> Option<Vec<u8>> {
        // SAFETY: the handle is open; the text belongs to it and is copied at once.
        unsafe { bytes_of(self.api.get_uname?(self.raw.as_ptr())) }
    }

    /// The trace clock's text, if the library gives it.
    pub(super) fn clock(&self) -> Option<Vec<u8>> {
        // SAFETY: the handle is open; the text belongs to it and is copied at once.
        unsafe { bytes_of(self.api.get_trace_clock?(self.raw.as_ptr())) }
    }

    /// The formats of all events, with the offsets that libtraceevent found.
    pub(super) fn formats(&self) -> Vec<EventFormat> {
        let tep = self.tep();
        let endian = self.endian();
        // SAFETY: the parser lives as long as its handle.
        let count = unsafe { (self.api.tep_get_events_count)(tep) };
        (0..count)
            .filter_map(|at| {
                // SAFETY: as above; the library checks the index.
                let event = NonNull::new(unsafe { (self.api.tep_get_event)(tep, at) })?;
                // SAFETY: the event belongs to the parser, which lives as long as `self` and is not changed
                // through it.
                event_format(unsafe { event.as_ref() }, endian)
            })
            .collect()
    }

    /// The next event of the CPU buffer of that index.
    pub(super) fn read(&self, at: usize) -> Option<Record<'_>> {
        // SAFETY: the handle is open; the library checks the index.
        let raw = unsafe { (self.api.read_data)(self.raw.as_ptr(), c_int::try_from(at).ok()?) };
        Some(Record { handle: self, raw: NonNull::new(raw)?, _lent: PhantomData })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle is open and this owner is the only one; records borrow it and are gone.
        unsafe { (self.api.close)(self.raw.as_ptr()) };
    }
}

/// One event. It holds the page that its bytes are in.
pub(super) struct Record<'h> {
    handle: &'h Handle,
    raw: NonNull<ffi::TepRecord>,
    _lent: PhantomData<&'h ffi::TepRecord>,
}

impl Record<'_> {
    fn get(&self) -> &ffi::TepRecord {
        // SAFETY: the library made the record and does not touch it before it is given back in `drop`.
        unsafe { self.raw.as_ref() }
    }

    /// Time, corrected by the library.
    pub(super) fn ts(&self) -> u64 {
        self.get().ts
    }

    /// The CPU whose buffer it was in.
    pub(super) fn cpu(&self) -> u32 {
        u32::try_from(self.get().cpu).unwrap_or(0)
    }

    /// Events lost just before: 0 none, negative an unknown number.
    pub(super) fn missed(&self) -> i64 {
        self.get().missed_events
    }

    /// `common_type`, by libtraceevent.
    pub(super) fn id(&self) -> Option<u16> {
        // SAFETY: parser and record belong to the same open handle.
        let id = unsafe { (self.handle.api.tep_data_type)(self.handle.tep(), self.raw.as_ptr()) };
        u16::try_from(id).ok()
    }

    /// The event's bytes.
    pub(super) fn data(&self) -> &[u8] {
        let record = self.get();
        let Ok(size @ 1..) = usize::try_from(record.size) else {
            return &[];
        };
        if record.data.is_null() {
            return &[];
        }
        // SAFETY: the library keeps `size` bytes at `data`, in a page that the record holds a reference to.
        unsafe { std::slice::from_raw_parts(record.data.cast::<u8>(), size) }
    }
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        // SAFETY: this owner has the only reference, and the handle is still open.
        unsafe { (self.handle.api.free_record)(self.raw.as_ptr()) };
    }
}

/// A copy of a C string; `None` if there is none.
///
/// # Safety
/// `text` is null or a C string that stays as it is through the call.
pub(super) unsafe fn bytes_of(text: *const c_char) -> Option<Vec<u8>> {
    if text.is_null() {
        return None;
    }
    // SAFETY: by the function's own condition.
    Some(unsafe { CStr::from_ptr(text) }.to_bytes().to_vec())
}

/// The same as text, empty if there is none; bytes that are not UTF-8 are replaced.
///
/// # Safety
/// As [`bytes_of`].
pub(super) unsafe fn text_of(text: *const c_char) -> String {
    // SAFETY: by the function's own condition.
    String::from_utf8_lossy(&unsafe { bytes_of(text) }.unwrap_or_default()).into_owned()
}

fn event_format(event: &ffi::TepEvent, endian: Endian) -> Option<EventFormat> {
    let mut fields = Vec::new();
    for first in [event.format.common_fields, event.format.fields] {
        let mut next = first;
        while let Some(field) = NonNull::new(next) {
            // SAFETY: a list that belongs to the event and ends with null.
            let field = unsafe { field.as_ref() };
            fields.push(format_field(field)?);
            next = field.next;
        }
    }
    Some(EventFormat {
        id: u16::try_from(event.id).ok()?,
        // SAFETY: these strings belong to the event.
        system: unsafe { text_of(event.system) },
        // SAFETY: as above.
        name: unsafe { text_of(event.name) },
        fields,
        print_fmt: print::print_fmt(&event.print_fmt),
        endian,
    })
}

fn format_field(field: &ffi::TepField) -> Option<Field> {
    // SAFETY: these strings belong to the field.
    let (name, type_text) = unsafe { (text_of(field.name), text_of(field.type_text)) };
    let has = |flag| field.flags & flag != 0;
    let kind = if has(ffi::FIELD_IS_RELATIVE) {
        FieldKind::RelLoc
    } else if has(ffi::FIELD_IS_DYNAMIC) {
        FieldKind::DataLoc
    } else if field.size == 0 {
        // `buf[]` of the ftrace system: to the end of the event.
        FieldKind::Array { len: 0 }
    } else if has(ffi::FIELD_IS_ARRAY) {
        FieldKind::Array { len: declared_len(&type_text).unwrap_or(field.arraylen) }
    } else {
        FieldKind::Scalar
    };
    Some(Field {
        name,
        type_text,
        offset: u32::try_from(field.offset).ok()?,
        size: u32::try_from(field.size).ok()?,
        signed: has(ffi::FIELD_IS_SIGNED),
        kind,
    })
}

/// The length in `char[30+1]`, of which libtraceevent 1.7 keeps the last number.
fn declared_len(type_text: &str) -> Option<u32> {
    let (_, brackets) = type_text.rsplit_once('[')?;
    u32::try_from(evaluate(brackets.strip_suffix(']')?)?).ok()
}
