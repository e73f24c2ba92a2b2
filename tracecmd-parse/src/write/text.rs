// SPDX-License-Identifier: GPL-2.0-or-later
//! Texts of tracefs that a trace holds.

use crate::format::{EventFormat, Field, FieldKind};
use crate::page::PageLayout;

impl EventFormat {
    /// The `format` file of the event, which [`EventFormat::parse`] reads back.
    pub fn to_text(&self) -> String {
        let mut text = format!("name: {}\nID: {}\nformat:\n", self.name, self.id);
        let mut common = true;
        for field in &self.fields {
            if common && !field.name.starts_with("common_") {
                common = false;
                text.push('\n');
            }
            text.push_str(&field_line(field));
        }
        text.push_str(&format!("\nprint fmt: {}\n", self.print_fmt));
        text
    }
}

fn field_line(field: &Field) -> String {
    format!(
        "\tfield:{};\toffset:{};\tsize:{};\tsigned:{};\n",
        declaration(field),
        field.offset,
        field.size,
        u8::from(field.signed)
    )
}

/// Type and name put together again.
fn declaration(field: &Field) -> String {
    let name = &field.name;
    let of_dynamic = matches!(field.kind, FieldKind::DataLoc | FieldKind::RelLoc);
    if let Some((before, after)) = field.type_text.split_once("(*") {
        return format!("{before}(*{name}{after}");
    }
    match field.type_text.find('[') {
        Some(at) if !of_dynamic => {
            let (element, brackets) = field.type_text.split_at(at);
            format!("{element} {name}{brackets}")
        }
        _ => format!("{} {name}", field.type_text),
    }
}

/// tracefs' `events/header_page`.
pub(super) fn header_page(layout: &PageLayout) -> String {
    let long = layout.commit_size;
    let data = layout.data_offset;
    let size = layout.page_size - data;
    format!(
        "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
         \tfield: local_t commit;\toffset:8;\tsize:{long};\tsigned:1;\n\
         \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
         \tfield: char data;\toffset:{data};\tsize:{size};\tsigned:1;\n"
    )
}

/// tracefs' `events/header_event`.
pub(super) fn header_event() -> &'static str {
    "# compressed entry header\n\
     \ttype_len    :    5 bits\n\
     \ttime_delta  :   27 bits\n\
     \tarray       :   32 bits\n\
     \n\
     \tpadding     : type == 29\n\
     \ttime_extend : type == 30\n\
     \ttime_stamp : type == 31\n\
     \tdata max type_len  == 28\n"
}
