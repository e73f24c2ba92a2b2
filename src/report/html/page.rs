// SPDX-License-Identifier: GPL-2.0-or-later
//! The frame of a page: its head, style sheet and script, and a policy that lets a browser load and run nothing else.

use maud::{DOCTYPE, PreEscaped, html};
use sha2::{Digest, Sha256};

use crate::report::html::style::{SCRIPT, STYLE};

/// A whole page; `nav`: ids of sections with their names.
pub fn page(title: &str, nav: &[(String, String)], body: &maud::Markup) -> String {
    let policy = format!(
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        base64(&Sha256::digest(SCRIPT))
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "sisdiff " (env!("CARGO_PKG_VERSION")) };
                title { "sisdiff: " (title) }
                // No icon is asked for over the network.
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    p.tool { "sisdiff " (env!("CARGO_PKG_VERSION")) }
                    h1 { (title) }
                    @if !nav.is_empty() {
                        nav aria-label="Sections" { @for (id, name) in nav { a href={ "#" (id) } { (name) } " " } }
                    }
                }
                main { (body) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string() + "\n"
}

/// RFC 4648, with padding.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, &byte| word << 8 | u32::from(byte)) << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let sextet = (word >> (18 - 6 * at)) as usize & 63;
            out.push(if at <= chunk.len() { char::from(ALPHABET[sextet]) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        let texts = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
        assert_eq!(texts, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }

    #[test]
    fn the_policy_allows_this_script_and_no_other() {
        let text = page("a", &[], &html! {});
        assert!(
            text.contains(&format!("script-src &#39;sha256-{}", base64(&Sha256::digest(SCRIPT))))
                || text.contains(&format!("script-src 'sha256-{}", base64(&Sha256::digest(SCRIPT)))),
            "{text}"
        );
        assert_eq!(text.matches("<script").count(), 1);
        assert!(!SCRIPT.contains("</") && !STYLE.contains("</"));
    }
}
