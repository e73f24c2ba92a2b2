// SPDX-License-Identifier: GPL-2.0-or-later
//! hwloc's XML (`lstopo --of xml`), versions 1 and 2, as the facts in it that say something about CPUs.
//!
//! | | version 1 | version 2 |
//! |---|---|---|
//! | caches | `Cache` with `depth` and `cache_type` | `L1Cache`, `L1iCache` … |
//! | sockets | `Socket`, `Package` since 1.11 | `Package` |
//! | nodes | parents of their CPUs, none on a machine of one | beside their CPUs, always there |
//! | distances | in the machine, a row for each node in the order of the file | at the end, with the nodes' numbers |
//! | offline CPUs | `online_cpuset` | in `complete_cpuset` only, as those that the process may not use |
//!
//! Read event by event, nothing is built of it but masks. Entities are not expanded.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::load::LoadError;
use super::masks::{self, excerpt};
use crate::cpumask::{Cpumask, MAX_CPUS};
use crate::units::Cpu;

/// Elements within each other; real files have about 15.
const MAX_DEPTH: usize = 64;
/// Objects of a kind that are kept: more than 1,024 CPUs can have.
const MAX_OBJECTS: usize = 8192;
/// Nodes and values of a distance table.
const MAX_VALUES: usize = 1 << 20;

/// A cache of data, or of data and code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cache {
    /// Its level, 1 for the nearest.
    pub level: u32,
    pub cpus: Cpumask,
}

/// A NUMA node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    /// The kernel's number.
    pub number: u32,
    /// hwloc's own number, by which some distances name it.
    pub gp_index: Option<u64>,
    pub cpus: Cpumask,
}

/// A table of distances.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Distances {
    /// Rows and columns.
    pub size: usize,
    /// The nodes' numbers in the order of rows; empty in version 1, where it is the order of the file.
    pub indexes: Vec<u64>,
    /// Whether the numbers are hwloc's own.
    pub by_gp_index: bool,
    /// Row by row.
    pub values: Vec<f64>,
    /// What the values are to be multiplied by.
    pub base: f64,
}

/// What an XML file tells of CPUs.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Objects {
    /// The version that the file names; 1 if it names none.
    pub version: u32,
    /// The machine's CPUs, with those that are offline or not allowed.
    pub complete: Cpumask,
    /// Version 1: those that are online.
    pub online: Option<Cpumask>,
    pub pus: Cpumask,
    pub cores: Vec<Cpumask>,
    pub clusters: Vec<Cpumask>,
    pub dies: Vec<Cpumask>,
    pub packages: Vec<Cpumask>,
    pub caches: Vec<Cache>,
    pub nodes: Vec<Node>,
    pub distances: Vec<Distances>,
    /// CPUs and their capacity, from the kinds of CPUs.
    pub capacities: Vec<(Cpumask, u64)>,
    /// `Architecture`, `OSRelease`, `CPUVendor` … with what they say, each once.
    pub infos: Vec<(String, String)>,
}

impl Objects {
    /// What an info says.
    pub fn info(&self, name: &str) -> Option<&str> {
        self.infos.iter().find(|(have, _)| have == name).map(|(_, value)| value.as_str())
    }
}

/// Reads `text`.
///
/// # Errors
/// If it is not XML or not hwloc's, and where a mask or number in it cannot be.
pub(super) fn read(origin: &str, text: &str) -> Result<Objects, LoadError> {
    let mut reader = Reader::from_str(text);
    let mut parse = Parse { origin, objects: Objects { version: 1, ..Objects::default() }, open: Vec::new() };
    let mut seen_root = false;
    loop {
        let broken = |at: u64, reason: String| LoadError::Archive {
            file: format!("{origin}: byte {at}"),
            expected: "whole XML file",
            reason,
        };
        let event = reader.read_event().map_err(|error| broken(reader.error_position(), error.to_string()))?;
        match event {
            Event::Start(element) => {
                parse.root(&element, &mut seen_root)?;
                parse.element(&element)?;
                if parse.open.len() == MAX_DEPTH {
                    return Err(LoadError::TooLarge {
                        file: origin.to_owned(),
                        what: "elements within each other",
                        limit: MAX_DEPTH as u64,
                    });
                }
                parse.open.push(Open::of(&element));
            }
            Event::Empty(element) => {
                parse.root(&element, &mut seen_root)?;
                parse.element(&element)?;
            }
            Event::End(_) => drop(parse.open.pop()),
            Event::Text(text) => parse.text(&text)?,
            Event::Eof if !parse.open.is_empty() => {
                return Err(broken(reader.buffer_position(), "it breaks off within an element".to_owned()));
            }
            Event::Eof if !seen_root => {
                return Err(broken(reader.buffer_position(), "it has no element".to_owned()));
            }
            Event::Eof => return Ok(parse.objects),
            _ => {}
        }
    }
}

/// What the text of an open element is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Other,
    CpuKind,
    Distances,
    Indexes,
    Values,
}

impl Open {
    fn of(element: &BytesStart<'_>) -> Self {
        match element.name().as_ref() {
            "cpukind" => Self::CpuKind,
            "distances2" | "distances" => Self::Distances,
            "indexes" => Self::Indexes,
            "u64values" => Self::Values,
            _ => Self::Other,
        }
    }
}

struct Parse<'a> {
    origin: &'a str,
    objects: Objects,
    open: Vec<Open>,
}

impl Parse<'_> {
    fn bad(&self, what: &str, found: &str, expected: &'static str) -> LoadError {
        LoadError::File { file: format!("{}: {what}", self.origin), found: excerpt(found), expected }
    }

    fn root(&mut self, element: &BytesStart<'_>, seen: &mut bool) -> Result<(), LoadError> {
        if std::mem::replace(seen, true) {
            return Ok(());
        }
        if element.name().as_ref() != "topology" {
            let name = element.name().as_ref().to_owned();
            return Err(self.bad("the first element", &name, "topology, as `lstopo --of xml` writes it"));
        }
        let version = attribute(element, "version").and_then(|text| text.split('.').next()?.parse().ok());
        self.objects.version = version.unwrap_or(1);
        Ok(())
    }

    fn element(&mut self, element: &BytesStart<'_>) -> Result<(), LoadError> {
        match element.name().as_ref() {
            "object" => self.object(element),
            "info" => self.info(element),
            "cpukind" => {
                let cpus = self.mask(element, "cpukind", "cpuset")?.unwrap_or_default();
                self.keep(|objects| objects.capacities.len())?;
                self.objects.capacities.push((cpus, 0));
                Ok(())
            }
            "distances2" | "distances" => self.distances(element),
            "latency" => {
                let value = attribute(element, "value").and_then(|text| text.parse().ok());
                self.value(value.ok_or_else(|| self.bad("a distance", "no number", "a number"))?)
            }
            _ => Ok(()),
        }
    }

    /// Room for one more object of a kind.
    fn keep(&self, len: impl Fn(&Objects) -> usize) -> Result<(), LoadError> {
        if len(&self.objects) < MAX_OBJECTS {
            return Ok(());
        }
        let (file, limit) = (self.origin.to_owned(), MAX_OBJECTS as u64);
        Err(LoadError::TooLarge { file, what: "objects of a kind", limit })
    }

    fn mask(&self, element: &BytesStart<'_>, of: &str, name: &str) -> Result<Option<Cpumask>, LoadError> {
        let Some(text) = attribute(element, name) else { return Ok(None) };
        let mask = masks::hwloc(&text);
        mask.map(Some)
            .ok_or_else(|| self.bad(&format!("{name} of {of}"), &text, "a mask of CPUs below 1024 such as 0xff"))
    }

    fn object(&mut self, element: &BytesStart<'_>) -> Result<(), LoadError> {
        let Some(kind) = attribute(element, "type") else { return Ok(()) };
        let number = |name: &str| attribute(element, name).and_then(|text| text.parse::<u64>().ok());
        // Devices and the like have no CPUs.
        let Some(cpus) = self.mask(element, &kind, "cpuset")? else { return Ok(()) };
        match kind.as_str() {
            "Machine" | "System" => {
                self.objects.complete =
                    self.objects.complete | self.mask(element, &kind, "complete_cpuset")?.unwrap_or(cpus);
                self.objects.online = self.mask(element, &kind, "online_cpuset")?;
            }
            "PU" => {
                let Some(cpu) = number("os_index").and_then(|n| usize::try_from(n).ok()).and_then(Cpu::new) else {
                    let text = attribute(element, "os_index").unwrap_or_default();
                    return Err(self.bad("os_index of PU", &text, "a number of a CPU below 1024"));
                };
                if cpus != Cpumask::of(cpu) {
                    return Err(self.bad(&format!("cpuset of PU {cpu}"), &cpus.to_string(), "that CPU alone"));
                }
                if self.objects.pus.test(cpu) {
                    return Err(self.bad("os_index of PU", &cpu.to_string(), "each CPU once"));
                }
                self.objects.pus.set(cpu);
            }
            "Core" => self.group(|objects| &mut objects.cores, cpus)?,
            "Die" => self.group(|objects| &mut objects.dies, cpus)?,
            "Package" | "Socket" => self.group(|objects| &mut objects.packages, cpus)?,
            "Group" if attribute(element, "subtype").as_deref() == Some("Cluster") => {
                self.group(|objects| &mut objects.clusters, cpus)?;
            }
            "NUMANode" | "Node" => {
                self.keep(|objects| objects.nodes.len())?;
                let index = number("os_index").unwrap_or(0);
                let Some(number) = u32::try_from(index).ok().filter(|&n| n < MAX_CPUS as u32) else {
                    return Err(self.bad("os_index of NUMANode", &index.to_string(), "a number of a node below 1024"));
                };
                let gp_index = attribute(element, "gp_index").and_then(|text| text.parse().ok());
                self.objects.nodes.push(Node { number, gp_index, cpus });
            }
            _ => {
                if let Some(level) = cache_level(&kind, element) {
                    self.keep(|objects| objects.caches.len())?;
                    self.objects.caches.push(Cache { level, cpus });
                }
            }
        }
        Ok(())
    }

    fn group(&mut self, of: impl Fn(&mut Objects) -> &mut Vec<Cpumask>, cpus: Cpumask) -> Result<(), LoadError> {
        let groups = of(&mut self.objects);
        if groups.len() < MAX_OBJECTS {
            groups.push(cpus);
            return Ok(());
        }
        let (file, limit) = (self.origin.to_owned(), MAX_OBJECTS as u64);
        Err(LoadError::TooLarge { file, what: "objects of a kind", limit })
    }

    fn info(&mut self, element: &BytesStart<'_>) -> Result<(), LoadError> {
        let (Some(name), Some(value)) = (attribute(element, "name"), attribute(element, "value")) else {
            return Ok(());
        };
        if name == "LinuxCapacity" && self.open.last() == Some(&Open::CpuKind) {
            let capacity = value.parse().ok().filter(|capacity| (1..=1 << 20).contains(capacity));
            let capacity =
                capacity.ok_or_else(|| self.bad("LinuxCapacity", &value, "a CPU capacity, 1024 for the biggest"))?;
            if let Some(last) = self.objects.capacities.last_mut() {
                last.1 = capacity;
            }
        }
        let told =
            ["Architecture", "OSRelease", "CPUVendor", "CPUFamilyNumber", "CPUImplementer"].contains(&name.as_str());
        if told && self.objects.info(&name).is_none() {
            self.objects.infos.push((name, value.chars().take(200).collect()));
        }
        Ok(())
    }

    fn distances(&mut self, element: &BytesStart<'_>) -> Result<(), LoadError> {
        self.keep(|objects| objects.distances.len())?;
        let get = |name: &str| attribute(element, name);
        // Version 2 has matrices of other things too, bandwidths among them.
        let two = element.name().as_ref() == "distances2";
        let latency = get("kind").and_then(|kind| kind.parse::<u64>().ok()).is_some_and(|kind| kind & 4 != 0);
        let of_nodes = get("type").is_some_and(|kind| kind == "NUMANode");
        let size = get("nbobjs").and_then(|text| text.parse().ok()).unwrap_or(0);
        self.objects.distances.push(Distances {
            size: if !two || (latency && of_nodes) { size } else { 0 },
            by_gp_index: get("indexing").is_some_and(|by| by == "gp"),
            base: get("latency_base").and_then(|text| text.parse().ok()).unwrap_or(1.0),
            ..Distances::default()
        });
        Ok(())
    }

    fn value(&mut self, value: f64) -> Result<(), LoadError> {
        let Some(table) = self.objects.distances.last_mut().filter(|_| self.open.contains(&Open::Distances)) else {
            return Ok(());
        };
        if table.values.len() == MAX_VALUES {
            let (file, limit) = (self.origin.to_owned(), MAX_VALUES as u64);
            return Err(LoadError::TooLarge { file, what: "distances", limit });
        }
        table.values.push(value);
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), LoadError> {
        match self.open.last() {
            Some(Open::Indexes) => {
                let Some(table) = self.objects.distances.last_mut() else { return Ok(()) };
                // The indexes of tables of other kinds begin with a type (`NUMANode:0`).
                table.indexes.extend(
                    text.split_ascii_whitespace().take(MAX_OBJECTS).filter_map(|word| word.parse::<u64>().ok()),
                );
                table.indexes.truncate(MAX_OBJECTS);
            }
            Some(Open::Values) => {
                for word in text.split_ascii_whitespace() {
                    let value = word.parse::<u64>().map_err(|_| self.bad("a distance", word, "a number"))?;
                    self.value(value as f64)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// The value of an attribute as it stands; those that are read hold nothing that is escaped.
fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let attribute = element.try_get_attribute(name).ok()??;
    Some(attribute.value.into_owned())
}

/// The level of a cache that holds data; `None` for those of code, and for what is no cache of CPUs.
fn cache_level(kind: &str, element: &BytesStart<'_>) -> Option<u32> {
    match kind {
        "Cache" => {
            let code = attribute(element, "cache_type").as_deref() == Some("2");
            attribute(element, "depth")?.parse().ok().filter(|_| !code)
        }
        // Caches of code are `L1iCache`.
        _ => kind.strip_prefix('L')?.strip_suffix("Cache")?.parse().ok(),
    }
}
