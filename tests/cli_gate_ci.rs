// SPDX-License-Identifier: GPL-2.0-or-later
//! The gate's reports for CI, each read back by what reads it there: an XML parser, the schemas of JSON and SARIF; and the
//! GitHub action, its steps run in a shell with the files that the service gives.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use quick_xml::Reader;
use quick_xml::events::Event;

#[path = "support/one_operand.rs"]
mod written;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
/// The third patch of the series reads the wrong CPU's affinity.
const BUG: &str = "v5.11+no-sis-avg-cpu+scan-cost+recent-used";
const SISDIFF: &str = env!("CARGO_BIN_EXE_sisdiff");

/// A gate over recordings `one&<two>` and `three`; in the first, a placement is outside of the affinity.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        let desk = Self(tempfile::tempdir().expect("a temporary directory"));
        for name in ["one&<two>", "three"] {
            fs::create_dir(desk.path(name)).expect("made");
        }
        written::recording(&desk.path("one&<two>"));
        for file in ["trace.dat", "topology.tar.gz"] {
            let from = Path::new(ROOT).join("traces/smp4-idle-light").join(file);
            fs::copy(from, desk.path("three").join(file)).expect("copied");
        }
        desk.write(
            "gate.toml",
            "traces = [\"*/trace.dat\"]\n\
             [pair.bug]\nbaseline = \"v5.11\"\npatched = \"v5.11+no-sis-avg-cpu+scan-cost+recent-used\"\n\
             [pair.lts]\nbaseline = \"v6.1\"\npatched = \"v6.12\"\n",
        );
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("written");
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(SISDIFF);
        command.env_remove("CLICOLOR_FORCE").stdin(Stdio::null()).current_dir(self.0.path()).args(args);
        command.output().expect("the binary runs")
    }

    /// Expects that exit code, and gives stdout.
    fn runs(&self, code: i32, args: &[&str]) -> String {
        let output = self.run(args);
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}\n{err}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// One unchanged, one changed, one new, and an orphan: of everything one, but what cannot be read.
    fn motley() -> Self {
        let desk = Self::new();
        desk.runs(1, &["gate", "check"]);
        desk.runs(0, &["gate", "accept"]);
        let name = |trace: &str, pair: &str| format!("snapshots/{trace}__trace.dat@{pair}.snap");
        fs::remove_file(desk.path(&name("three", "lts"))).expect("removed");
        let changed = name("three", "bug");
        let text = desk.read(&changed).replacen("  search  ", "  serach  ", 1);
        desk.write(&changed, &text);
        let orphan = desk.read(&name("three", "bug")).replace("trace: three", "trace: four");
        desk.write("snapshots/four__trace.dat@bug.snap", &orphan);
        desk
    }
}

/// Name, attributes of every element, and text that was in it.
fn elements(xml: &str) -> Vec<(String, BTreeMap<String, String>)> {
    let mut reader = Reader::from_str(xml);
    let mut found = Vec::new();
    let mut depth = 0;
    loop {
        let (element, opens) = match reader.read_event().unwrap_or_else(|error| panic!("{error}\n{xml}")) {
            Event::Start(element) => (element, true),
            Event::Empty(element) => (element, false),
            Event::End(_) => {
                depth -= 1;
                continue;
            }
            Event::Eof => break,
            _ => continue,
        };
        depth += i32::from(opens);
        let name = element.name().as_ref().to_owned();
        let attributes = element.attributes().map(|attribute| {
            let attribute = attribute.expect("an attribute");
            let value = quick_xml::escape::unescape(&attribute.value).expect("escapes").into_owned();
            (attribute.key.as_ref().to_owned(), value)
        });
        found.push((name, attributes.collect()));
    }
    assert_eq!(depth, 0, "every element is closed");
    found
}

#[test]
fn junit_adds_up_and_is_xml() {
    let desk = Desk::motley();
    let xml = desk.runs(2, &["gate", "check", "--format", "junit"]);
    let elements = elements(&xml);
    let count = |name: &str| elements.iter().filter(|(element, _)| element == name).count();
    assert_eq!((count("testsuites"), count("testsuite"), count("testcase")), (1, 3, 5), "{xml}");
    assert_eq!((count("failure"), count("error")), (2, 1), "{xml}");
    let all = &elements[0].1;
    let said = |key: &str| all[key].parse::<usize>().expect("a count");
    assert_eq!((said("tests"), said("failures"), said("errors")), (5, 2, 1), "{xml}");
    let of = |name: &str, key: &str| -> usize {
        let suites = elements.iter().filter(|(element, _)| element == name);
        suites.map(|(_, attributes)| attributes[key].parse::<usize>().expect("a count")).sum()
    };
    assert_eq!((of("testsuite", "tests"), of("testsuite", "failures"), of("testsuite", "errors")), (5, 2, 1));
    let suites: Vec<&str> =
        elements.iter().filter(|(name, _)| name == "testsuite").map(|(_, a)| a["name"].as_str()).collect();
    assert_eq!(suites, ["one&<two>/trace.dat", "three/trace.dat", "gate"]);
    assert_eq!(xml, desk.runs(2, &["gate", "check", "--format", "junit", "--threads", "1"]), "no times, no order");
}

fn fits(schema: &Path, value: &serde_json::Value) {
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    compiler.enable_format_assertions();
    let id = compiler.compile(&schema.display().to_string(), &mut schemas).expect("a schema");
    if let Err(error) = schemas.validate(value, id) {
        panic!("{}: {error:#}\n{value:#}", schema.display());
    }
}

#[test]
fn json_fits_its_schema() {
    let desk = Desk::motley();
    let report: serde_json::Value =
        serde_json::from_str(&desk.runs(2, &["gate", "check", "--format", "json"])).expect("JSON");
    fits(&Path::new(ROOT).join("docs/gate.schema.json"), &report);
    assert_eq!(report["verdict"], "trouble");
    let status: Vec<&str> =
        report["checks"].as_array().expect("checks").iter().filter_map(|check| check["status"].as_str()).collect();
    assert_eq!(status, ["unchanged", "unchanged", "changed", "new"]);
    let keys: Vec<&str> = report["checks"][2]["changes"]
        .as_array()
        .expect("changes")
        .iter()
        .filter_map(|one| one["key"].as_str())
        .collect();
    assert!(keys.contains(&"sis.search.patched") && keys.contains(&"sis.serach.patched"), "{keys:?}");
    assert_eq!(report["troubles"][0]["kind"], "missing");
}

#[test]
fn sarif_fits_the_standards_schema_and_names_wrong_placements() {
    let desk = Desk::new();
    let sarif = |code| -> serde_json::Value {
        let text = desk.runs(code, &["gate", "check", "--quiet", "--report", "sarif=gate.sarif"]);
        assert_eq!(text, "");
        serde_json::from_str(&desk.read("gate.sarif")).expect("JSON")
    };
    let log = sarif(1);
    fits(&Path::new(ROOT).join("tests/gate/sarif-schema-2.1.0.json"), &log);
    let run = &log["runs"][0];
    let results = run["results"].as_array().expect("results");
    assert_eq!(results.len(), 1, "the third patch alone places it wrongly: {log:#}");
    for result in results {
        assert_eq!(result["ruleId"], "cpu-outside-cpus-ptr");
        let rule = &run["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().expect("a place") as usize];
        assert_eq!(rule["id"], result["ruleId"]);
        let uri = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
        assert_eq!(uri, "one%26%3Ctwo%3E/trace.dat");
        let text = result["message"]["text"].as_str().expect("a message");
        assert!(text.contains("outside of cpus_ptr; the first is #"), "{text}");
        assert_eq!(result["baselineState"], "new");
    }
    // What the replay says of it.
    let said = |result: &&serde_json::Value| result["message"]["text"].as_str().is_some_and(|text| text.contains(BUG));
    let text = results.iter().find(said).and_then(|result| result["message"]["text"].as_str()).expect("of the bug");
    let sentence = &text[text.find("WRONG: ").expect("a sentence")..];
    let args = ["replay", "one&<two>/trace.dat", "--baseline", "v5.11", "--patched", BUG];
    let replay = desk.runs(0, &args);
    assert!(replay.contains(sentence), "{sentence}\n{replay}");
    desk.runs(0, &["gate", "accept"]);
    assert_eq!(sarif(0)["runs"][0]["results"][0]["baselineState"], "unchanged");
}

#[test]
fn findings_of_fuzzing_are_sarif_too() {
    let desk = Desk::new();
    let args = ["fuzz", "--pair", "v5.11,v5.11+recent-used", "--cases", "400", "--quiet", "--sarif", "fuzz.sarif"];
    desk.runs(1, &args);
    let log = serde_json::from_str(&desk.read("fuzz.sarif")).expect("JSON");
    fits(&Path::new(ROOT).join("tests/gate/sarif-schema-2.1.0.json"), &log);
    let results = log["runs"][0]["results"].as_array().expect("results");
    let cases = fs::read_dir(desk.path("sisdiff-findings")).expect("cases").count();
    assert_eq!(results.len(), cases);
    let uri = &results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert!(desk.path(uri.as_str().expect("a path")).is_file(), "{uri}");
}

#[test]
fn github_and_markdown_say_the_same() {
    let desk = Desk::motley();
    let text = desk.runs(2, &["gate", "check", "--format", "github", "--report", "markdown=gate.md", "-o", "log.txt"]);
    assert_eq!(text, "");
    let log = desk.read("log.txt");
    let errors: Vec<&str> = log.lines().filter(|line| line.starts_with("::error ")).collect();
    assert_eq!(errors.len(), 3, "{log}");
    assert!(errors[0].starts_with("::error file=snapshots/three__trace.dat@bug.snap,line="), "{log}");
    assert!(log.lines().any(|line| line.starts_with("::warning file=one&<two>/trace.dat,")), "known wrong: {log}");
    let summary = desk.read("gate.md");
    assert!(summary.contains("## sisdiff gate: trouble") && summary.contains("### Trouble"), "{summary}");
    assert!(summary.contains("| three/trace.dat | bug | changed | sis.search.baseline"), "{summary}");
    assert!(summary.contains("| one\\&\\<two\\>/trace.dat | bug | unchanged | WRONG: "), "{summary}");
    assert!(summary.contains("```diff\n"), "{summary}");
}

/// A value of the action's small YAML: what follows `key:` at that indent, folded blocks line by line.
fn block(yaml: &str, key: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = yaml.lines().peekable();
    while let Some(line) = lines.next() {
        let indent = line.len() - line.trim_start().len();
        if line.trim_start() != format!("{key}: |") {
            continue;
        }
        let mut text = String::new();
        while let Some(next) = lines.peek() {
            let inner = next.len() - next.trim_start().len();
            if !next.trim().is_empty() && inner <= indent {
                break;
            }
            text += next.get(indent + 2..).unwrap_or("");
            text.push('\n');
            lines.next();
        }
        found.push(text);
    }
    found
}

/// The service's files and folders.
struct Service<'a> {
    desk: &'a Desk,
    inputs: BTreeMap<&'static str, String>,
}

impl Service<'_> {
    /// Runs the steps of action.yml one after the other, as the service does: each `env` filled in, GITHUB_OUTPUT read
    /// between them. Gives the exit code, the log, and the outputs of the last step.
    fn run(&self) -> (i32, String, BTreeMap<String, String>) {
        let yaml = fs::read_to_string(Path::new(ROOT).join("action.yml")).expect("action.yml");
        let mut outputs: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        let mut log = String::new();
        let mut last = BTreeMap::new();
        let steps: Vec<&str> = yaml.split("\n    - name: ").skip(1).collect();
        assert_eq!(steps.len(), 2);
        for step in steps {
            let id = step.lines().find_map(|line| line.trim().strip_prefix("id: ")).expect("an id");
            assert!(step.contains("shell: bash"), "a composite step names its shell");
            let file = self.desk.path("github-output");
            fs::write(&file, "").expect("written");
            let mut command = Command::new("bash");
            command.args(["--noprofile", "--norc", "-e", "-o", "pipefail", "-c", &block(step, "run")[0]]);
            command.current_dir(self.desk.0.path()).stdin(Stdio::null()).env("GITHUB_OUTPUT", &file);
            command.env("GITHUB_STEP_SUMMARY", self.desk.path("summary")).env("RUNNER_TEMP", self.desk.path(""));
            for (name, value) in env(step) {
                command.env(name, self.filled(&value, &outputs));
            }
            let output = command.output().expect("bash runs");
            log += &String::from_utf8_lossy(&output.stdout);
            log += &String::from_utf8_lossy(&output.stderr);
            let told = fs::read_to_string(&file).expect("GITHUB_OUTPUT");
            last = told
                .lines()
                .filter_map(|line| line.split_once('='))
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .collect();
            outputs.insert(id.to_owned(), last.clone());
            if !output.status.success() {
                return (output.status.code().unwrap_or(-1), log, last);
            }
        }
        (0, log, last)
    }

    /// An expression's value.
    fn filled(&self, value: &str, outputs: &BTreeMap<String, BTreeMap<String, String>>) -> String {
        let Some(expression) = value.strip_prefix("${{ ").and_then(|rest| rest.strip_suffix(" }}")) else {
            return value.to_owned();
        };
        let parts: Vec<&str> = expression.split('.').collect();
        match parts[..] {
            ["inputs", name] => self.inputs.get(name).cloned().unwrap_or_else(|| default(name)),
            ["steps", step, "outputs", name] => outputs[step].get(name).cloned().unwrap_or_default(),
            ["github", "action_path"] => ROOT.to_owned(),
            _ => panic!("no expression {expression:?}"),
        }
    }
}

/// The `env` of a step.
fn env(step: &str) -> Vec<(String, String)> {
    let lines = step.lines().skip_while(|line| line.trim() != "env:").skip(1);
    let pairs = lines.take_while(|line| !line.trim().starts_with("run:"));
    pairs.filter_map(|line| line.trim().split_once(": ")).map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
}

/// The default of an input.
fn default(input: &str) -> String {
    let yaml = fs::read_to_string(Path::new(ROOT).join("action.yml")).expect("action.yml");
    let from = yaml.split_once(&format!("\n  {input}:\n")).unwrap_or_else(|| panic!("no input {input}")).1;
    let value = from.lines().find_map(|line| line.trim().strip_prefix("default: ")).expect("a default");
    value.trim_matches('"').to_owned()
}

#[test]
fn the_github_action_does_what_it_says() {
    let desk = Desk::new();
    let inputs = |more: &[(&'static str, &str)]| {
        let mut inputs: BTreeMap<&'static str, String> = [("path", SISDIFF.to_owned())].into();
        inputs.extend(more.iter().map(|&(name, value)| (name, value.to_owned())));
        Service { desk: &desk, inputs }
    };
    let (code, log, outputs) = inputs(&[("sarif", "gate.sarif"), ("junit", "gate.xml"), ("json", "gate.json")]).run();
    assert_eq!((code, outputs["verdict"].as_str()), (1, "changed"), "{log}");
    assert!(log.contains("sisdiff 0.1.0\n") && log.contains("::error file=gate.toml,"), "{log}");
    assert!(desk.read("summary").starts_with("## sisdiff gate: changed"));
    for file in ["gate.sarif", "gate.xml", "gate.json"] {
        assert!(!desk.read(file).is_empty(), "{file}");
    }
    desk.runs(0, &["gate", "accept"]);
    let (code, log, outputs) = inputs(&[("summary", "false"), ("threads", "1"), ("format", "text")]).run();
    assert_eq!((code, outputs["verdict"].as_str()), (0, "unchanged"), "{log}");
    assert_eq!(desk.read("summary").matches("## ").count(), 1, "no second summary");
    let (code, log, _) = inputs(&[("only", "three/*\nlts\n"), ("format", "text")]).run();
    assert!(code == 0 && log.contains("3 replays: 3 unchanged"), "{log}");
    let (code, log, outputs) = inputs(&[("config", "none.toml; echo oops")]).run();
    assert_eq!((code, outputs["verdict"].as_str()), (2, "trouble"), "{log}");
    assert!(!log.contains("\noops"), "an input is no command: {log}");
    let (code, log, _) = Service { desk: &desk, inputs: [("version", "v1".to_owned())].into() }.run();
    assert!(code == 2 && log.contains("the input version needs repository"), "{log}");
}

#[test]
fn every_input_of_the_action_is_used_and_told() {
    let yaml = fs::read_to_string(Path::new(ROOT).join("action.yml")).expect("action.yml");
    let docs = fs::read_to_string(Path::new(ROOT).join("docs/ci.md")).expect("docs/ci.md");
    let inputs =
        yaml.split_once("\ninputs:\n").and_then(|(_, rest)| rest.split_once("\noutputs:\n")).expect("inputs").0;
    let names: Vec<&str> = inputs
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .map(|line| line.trim().trim_end_matches(':'))
        .collect();
    assert!(names.len() >= 8, "{names:?}");
    for name in names {
        assert!(yaml.contains(&format!("${{{{ inputs.{name} }}}}")), "{name} is not used");
        assert!(docs.contains(&format!("`{name}`")), "docs/ci.md does not tell {name}");
        assert!(!yaml.contains(&format!("run: ${{{{ inputs.{name}")));
    }
    // What a user wrote goes through the environment: an expression in a script would be run.
    assert!(block(&yaml, "run").iter().all(|script| !script.contains("${{")), "an expression in a script");
}
