// SPDX-License-Identifier: GPL-2.0-or-later
//! The C interface of libtracecmd and libtraceevent: just what is needed, by hand.
//!
//! **Source**: trace-cmd.h of libtracecmd 1.3, event-parse.h of libtraceevent 1.7. The layouts below are part of
//! their ABI (soname 1): programs read these structures directly.

use std::ffi::{c_char, c_int, c_longlong, c_uint, c_ulong, c_ulonglong, c_void};

use libloading::Library;

use crate::error::Error;

/// `struct tracecmd_input`.
#[repr(C)]
pub(super) struct Input {
    _private: [u8; 0],
}

/// `struct tep_handle`.
#[repr(C)]
pub(super) struct Tep {
    _private: [u8; 0],
}

/// `struct tep_record`, up to the last member that is read.
#[repr(C)]
pub(super) struct TepRecord {
    pub(super) ts: c_ulonglong,
    pub(super) offset: c_ulonglong,
    pub(super) missed_events: c_longlong,
    pub(super) record_size: c_int,
    pub(super) size: c_int,
    pub(super) data: *mut c_void,
    pub(super) cpu: c_int,
}

/// `struct tep_format_field`.
#[repr(C)]
pub(super) struct TepField {
    pub(super) next: *mut TepField,
    pub(super) event: *mut TepEvent,
    pub(super) type_text: *mut c_char,
    pub(super) name: *mut c_char,
    pub(super) alias: *mut c_char,
    pub(super) offset: c_int,
    pub(super) size: c_int,
    pub(super) arraylen: c_uint,
    pub(super) elementsize: c_uint,
    pub(super) flags: c_ulong,
}

/// Members of `enum tep_format_flags`.
pub(super) const FIELD_IS_ARRAY: c_ulong = 1;
pub(super) const FIELD_IS_SIGNED: c_ulong = 4;
pub(super) const FIELD_IS_DYNAMIC: c_ulong = 16;
pub(super) const FIELD_IS_RELATIVE: c_ulong = 256;

/// `struct tep_format`.
#[repr(C)]
pub(super) struct TepFormat {
    pub(super) nr_common: c_int,
    pub(super) nr_fields: c_int,
    pub(super) common_fields: *mut TepField,
    pub(super) fields: *mut TepField,
}

/// `struct tep_print_fmt`.
#[repr(C)]
pub(super) struct TepPrintFmt {
    pub(super) format: *mut c_char,
    pub(super) args: *mut PrintArg,
    pub(super) print_cache: *mut c_void,
}

/// `struct tep_event`, up to the last member that is read.
#[repr(C)]
pub(super) struct TepEvent {
    pub(super) tep: *mut Tep,
    pub(super) name: *mut c_char,
    pub(super) id: c_int,
    pub(super) flags: c_int,
    pub(super) format: TepFormat,
    pub(super) print_fmt: TepPrintFmt,
    pub(super) system: *mut c_char,
}

/// `struct tep_print_arg`.
#[repr(C)]
pub(super) struct PrintArg {
    pub(super) next: *mut PrintArg,
    pub(super) kind: c_int,
    pub(super) of: PrintArgOf,
}

/// Values of `enum tep_print_arg_type`.
pub(super) mod arg {
    use std::ffi::c_int;

    pub(in super::super) const ATOM: c_int = 1;
    pub(in super::super) const FIELD: c_int = 2;
    pub(in super::super) const FLAGS: c_int = 3;
    pub(in super::super) const TYPE: c_int = 7;
    pub(in super::super) const OP: c_int = 11;
}

/// The union in `struct tep_print_arg`, its members that are read.
#[repr(C)]
pub(super) union PrintArgOf {
    pub(super) atom: ArgAtom,
    pub(super) field: ArgField,
    pub(super) flags: ArgFlags,
    pub(super) typecast: ArgTypecast,
    pub(super) op: ArgOp,
}

/// `struct tep_print_arg_atom`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ArgAtom {
    pub(super) atom: *mut c_char,
}

/// `struct tep_print_arg_field`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ArgField {
    pub(super) name: *mut c_char,
    pub(super) field: *mut TepField,
}

/// `struct tep_print_arg_flags`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ArgFlags {
    pub(super) field: *mut PrintArg,
    pub(super) delim: *mut c_char,
    pub(super) flags: *mut FlagSym,
}

/// `struct tep_print_arg_typecast`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ArgTypecast {
    pub(super) type_text: *mut c_char,
    pub(super) item: *mut PrintArg,
}

/// `struct tep_print_arg_op`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ArgOp {
    pub(super) op: *mut c_char,
    pub(super) prio: c_int,
    pub(super) left: *mut PrintArg,
    pub(super) right: *mut PrintArg,
}

/// `struct tep_print_flag_sym`.
#[repr(C)]
pub(super) struct FlagSym {
    pub(super) next: *mut FlagSym,
    pub(super) value: *mut c_char,
    pub(super) text: *mut c_char,
}

/// `TRACECMD_FL_LOAD_NO_PLUGINS`: plugins are programs out of the user's directories, and only print.
pub(super) const LOAD_NO_PLUGINS: c_int = 1;
/// `TEP_LOG_WARNING`.
pub(super) const LOG_WARNING: c_int = 3;

/// The functions of both libraries.
///
/// The pointers are valid as long as the libraries stay loaded, which is why these own them.
pub(super) struct Api {
    pub(super) open: unsafe extern "C" fn(*const c_char, c_int) -> *mut Input,
    pub(super) close: unsafe extern "C" fn(*mut Input),
    pub(super) get_tep: unsafe extern "C" fn(*mut Input) -> *mut Tep,
    pub(super) buffer_instances: unsafe extern "C" fn(*mut Input) -> c_int,
    pub(super) buffer_instance_name: unsafe extern "C" fn(*mut Input, c_int) -> *const c_char,
    pub(super) buffer_instance_handle: unsafe extern "C" fn(*mut Input, c_int) -> *mut Input,
    pub(super) read_data: unsafe extern "C" fn(*mut Input, c_int) -> *mut TepRecord,
    pub(super) free_record: unsafe extern "C" fn(*mut TepRecord),
    pub(super) set_loglevel: unsafe extern "C" fn(c_int),
    /// The last three are exported and not in the public header: a library without them is usable.
    pub(super) cpus: Option<unsafe extern "C" fn(*mut Input) -> c_int>,
    pub(super) get_uname: Option<unsafe extern "C" fn(*mut Input) -> *const c_char>,
    pub(super) get_trace_clock: Option<unsafe extern "C" fn(*mut Input) -> *const c_char>,

    pub(super) tep_get_cpus: unsafe extern "C" fn(*mut Tep) -> c_int,
    pub(super) tep_get_page_size: unsafe extern "C" fn(*mut Tep) -> c_int,
    pub(super) tep_get_long_size: unsafe extern "C" fn(*mut Tep) -> c_int,
    pub(super) tep_get_header_page_size: unsafe extern "C" fn(*mut Tep) -> c_int,
    pub(super) tep_is_file_bigendian: unsafe extern "C" fn(*mut Tep) -> bool,
    pub(super) tep_get_events_count: unsafe extern "C" fn(*mut Tep) -> c_int,
    pub(super) tep_get_event: unsafe extern "C" fn(*mut Tep, c_int) -> *mut TepEvent,
    pub(super) tep_data_type: unsafe extern "C" fn(*mut Tep, *mut TepRecord) -> c_int,

    _traceevent: Library,
    _tracecmd: Library,
}

impl Api {
    /// Loads both libraries and looks up the functions.
    ///
    /// # Errors
    /// [`Error::Library`] with the library that is not there or has not what is needed.
    pub(super) fn load(names: &super::Libraries) -> Result<Api, Error> {
        let traceevent = load(&names.traceevent)?;
        let tracecmd = load(&names.tracecmd)?;
        // The declared type of each function is the one of its C declaration.
        macro_rules! symbol {
            ($lib:ident, $name:literal) => {{
                // SAFETY: the type that the pointer is given to is that of the C function of this name; the pointer
                // is stored beside the library in `Api`, so it does not outlive it.
                let found = unsafe { $lib.get($name) };
                *found.map_err(|error| missing(&names.$lib, error))?
            }};
        }
        macro_rules! optional {
            ($lib:ident, $name:literal) => {
                // SAFETY: as above.
                unsafe { $lib.get($name) }.ok().map(|found| *found)
            };
        }
        Ok(Api {
            open: symbol!(tracecmd, b"tracecmd_open\0"),
            close: symbol!(tracecmd, b"tracecmd_close\0"),
            get_tep: symbol!(tracecmd, b"tracecmd_get_tep\0"),
            buffer_instances: symbol!(tracecmd, b"tracecmd_buffer_instances\0"),
            buffer_instance_name: symbol!(tracecmd, b"tracecmd_buffer_instance_name\0"),
            buffer_instance_handle: symbol!(tracecmd, b"tracecmd_buffer_instance_handle\0"),
            read_data: symbol!(tracecmd, b"tracecmd_read_data\0"),
            free_record: symbol!(tracecmd, b"tracecmd_free_record\0"),
            set_loglevel: symbol!(tracecmd, b"tracecmd_set_loglevel\0"),
            cpus: optional!(tracecmd, b"tracecmd_cpus\0"),
            get_uname: optional!(tracecmd, b"tracecmd_get_uname\0"),
            get_trace_clock: optional!(tracecmd, b"tracecmd_get_trace_clock\0"),
            tep_get_cpus: symbol!(traceevent, b"tep_get_cpus\0"),
            tep_get_page_size: symbol!(traceevent, b"tep_get_page_size\0"),
            tep_get_long_size: symbol!(traceevent, b"tep_get_long_size\0"),
            tep_get_header_page_size: symbol!(traceevent, b"tep_get_header_page_size\0"),
            tep_is_file_bigendian: symbol!(traceevent, b"tep_is_file_bigendian\0"),
            tep_get_events_count: symbol!(traceevent, b"tep_get_events_count\0"),
            tep_get_event: symbol!(traceevent, b"tep_get_event\0"),
            tep_data_type: symbol!(traceevent, b"tep_data_type\0"),
            _traceevent: traceevent,
            _tracecmd: tracecmd,
        })
    }
}

fn load(name: &str) -> Result<Library, Error> {
    // SAFETY: the initialisers of libtracecmd and libtraceevent register their clock and compression methods and
    // do nothing else; a caller that names another library answers for it.
    unsafe { Library::new(name) }.map_err(|error| missing(name, error))
}

fn missing(name: &str, error: libloading::Error) -> Error {
    let mut why = error.to_string();
    // libloading puts the loader's own words behind its own.
    if let Some(source) = std::error::Error::source(&error) {
        why = source.to_string();
    }
    Error::Library { name: name.to_string(), why }
}
