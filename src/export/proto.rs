// SPDX-License-Identifier: GPL-2.0-or-later
//! Protocol buffers, written only: tags, varints, nested messages.
//!
//! Own code: what is needed of the encoding fits here, and a generator of code (prost) would bring a procedural macro and
//! its parser for some twenty fields. `tests/perfetto.rs` decodes what this writes with Perfetto's published schema.

/// A message that is being put together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message(Vec<u8>);

const VARINT: u64 = 0;
const BYTES: u64 = 2;

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn tag(&mut self, field: u32, wire: u64) {
        self.varint(u64::from(field) << 3 | wire);
    }

    /// A field of any integer type but sint and fixed ones, bool, or enum.
    pub fn uint(mut self, field: u32, value: u64) -> Self {
        self.tag(field, VARINT);
        self.varint(value);
        self
    }

    /// A field of type int32 or int64.
    pub fn int(self, field: u32, value: i64) -> Self {
        // Negative numbers take ten bytes: the standard says so.
        self.uint(field, value as u64)
    }

    /// A field of type string.
    pub fn text(self, field: u32, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    /// A field that is a message.
    pub fn message(self, field: u32, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }

    fn bytes(mut self, field: u32, bytes: &[u8]) -> Self {
        self.tag(field, BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// The fields of both.
    pub fn joined(mut self, other: &Self) -> Self {
        self.0.extend_from_slice(&other.0);
        self
    }

    /// Its encoding.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_standards_own_examples() {
        let encoded = |message: Message| message.as_bytes().to_vec();
        assert_eq!(encoded(Message::default().uint(1, 150)), [0x08, 0x96, 0x01]);
        assert_eq!(encoded(Message::default().text(2, "testing")), b"\x12\x07testing");
        let inner = Message::default().uint(1, 150);
        assert_eq!(encoded(Message::default().message(3, &inner)), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let negative = encoded(Message::default().int(1, -2));
        assert_eq!(negative, [0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
    }
}
