// SPDX-License-Identifier: GPL-2.0-or-later
//! The fields of the kprobe events on select_task_rq_fair(). A field is there only where the recorded kernel has the
//! member.

use tracecmd_parse::{EventFormat, FieldRef, RawEvent};

use crate::trace::decode::Lack;
use crate::trace::event::{SisIn, SisRq};
use crate::units::{Cpu, Pid};
use crate::wakeup::WakeKind;

/// The kernel keeps weights with 10 more bits on 64-bit machines (`SCHED_FIXEDPOINT_SHIFT`, scale_load_down()).
const WEIGHT_SHIFT: u32 = 10;

#[derive(Debug, Clone)]
pub(super) struct SisFields {
    pid: FieldRef,
    prev: FieldRef,
    flags: FieldRef,
    sdflag: Option<FieldRef>,
    ruc: Option<FieldRef>,
    oncpu: Option<FieldRef>,
    wflips: Option<FieldRef>,
    wdecay: Option<FieldRef>,
    lastwakee: Option<FieldRef>,
    util: Option<FieldRef>,
    uest: Option<FieldRef>,
    load: Option<FieldRef>,
    lut: Option<FieldRef>,
    weight: Option<FieldRef>,
    ncpus: Option<FieldRef>,
    mask0: Option<FieldRef>,
    mask1: Option<FieldRef>,
    policy: Option<FieldRef>,
    pflags: Option<FieldRef>,
    depth: Option<FieldRef>,
    nid: Option<FieldRef>,
    delayed: Option<FieldRef>,
    jiffies: Option<FieldRef>,
}

impl SisFields {
    pub(super) fn find(format: &EventFormat, lacks: &mut Vec<Lack>) -> Option<Self> {
        let field = |name| format.field_ref(name).ok();
        let mut wanted = |name| {
            let found = field(name);
            if found.is_none() {
                lacks.push(Lack::Field { event: format.name.clone(), field: name });
            }
            found
        };
        Some(Self {
            pid: wanted("pid")?,
            prev: wanted("prev")?,
            flags: wanted("flags")?,
            sdflag: field("sdflag"),
            ruc: wanted("ruc"),
            oncpu: field("oncpu"),
            wflips: wanted("wflips"),
            wdecay: wanted("wdecay"),
            lastwakee: wanted("lastwakee"),
            util: wanted("util"),
            uest: field("uest"),
            load: wanted("load"),
            lut: field("lut"),
            weight: field("weight"),
            ncpus: wanted("ncpus"),
            mask0: wanted("mask0"),
            mask1: field("mask1"),
            policy: wanted("policy"),
            pflags: wanted("pflags"),
            depth: field("depth"),
            nid: field("nid"),
            delayed: field("delayed"),
            jiffies: field("jiffies"),
        })
    }

    pub(super) fn read(&self, raw: &RawEvent<'_>) -> Option<SisIn> {
        let unsigned = |field: Option<FieldRef>| field.and_then(|field| field.u64(raw));
        let (kind, sync) = self.question(raw)?;
        Some(SisIn {
            pid: Pid(i32::try_from(self.pid.i64(raw)?).ok().filter(|&pid| pid >= 0)?),
            prev_cpu: Cpu::new(usize::try_from(self.prev.i64(raw)?).ok()?)?,
            kind,
            sync,
            recent_used_cpu: self
                .ruc
                .and_then(|field| field.i64(raw))
                .and_then(|cpu| usize::try_from(cpu).ok())
                .and_then(Cpu::new),
            on_cpu: unsigned(self.oncpu).map(|on| on != 0),
            wakee_flips: unsigned(self.wflips).map(|flips| flips as u32),
            wakee_flip_decay_jiffies: unsigned(self.wdecay),
            last_wakee: pid(self.lastwakee, raw),
            util_avg: unsigned(self.util),
            util_est: unsigned(self.uest),
            load_avg: unsigned(self.load),
            last_update_time_ns: unsigned(self.lut),
            weight: unsigned(self.weight).map(|weight| weight >> WEIGHT_SHIFT),
            nr_cpus_allowed: unsigned(self.ncpus).map(|n| n as u32),
            cpus_ptr: unsigned(self.mask0).map(|low| [low, unsigned(self.mask1).unwrap_or(u64::MAX)]),
            policy: unsigned(self.policy).map(|policy| policy as u32),
            flags: unsigned(self.pflags),
            depth: unsigned(self.depth).map(|depth| depth as u32),
            numa_preferred_nid: self.nid.and_then(|field| field.i64(raw)).map(|nid| nid as i32),
            delayed: unsigned(self.delayed).map(|delayed| delayed != 0),
            jiffies: unsigned(self.jiffies),
        })
    }

    /// What the call is for, and WF_SYNC.
    ///
    /// **Source**: kernel/sched/sched.h, the WF_ flags. Since 5.12 the third argument holds WF_EXEC 2, WF_FORK 4,
    /// WF_TTWU 8, WF_SYNC 0x10; before, sd_flag holds SD_BALANCE_EXEC 2, SD_BALANCE_FORK 4, SD_BALANCE_WAKE 8, and the
    /// fourth argument WF_SYNC 1.
    fn question(&self, raw: &RawEvent<'_>) -> Option<(WakeKind, bool)> {
        let flags = self.flags.u64(raw)?;
        let (what, sync) = match self.sdflag {
            Some(sd_flag) => (sd_flag.u64(raw)?, flags & 1 != 0),
            None => (flags, flags & 0x10 != 0),
        };
        let kind = match what & 0xe {
            2 => WakeKind::Exec,
            4 => WakeKind::Fork,
            8 => WakeKind::Ttwu,
            _ => return None,
        };
        Some((kind, sync))
    }
}

fn pid(field: Option<FieldRef>, raw: &RawEvent<'_>) -> Option<Pid> {
    field.and_then(|field| field.i64(raw)).and_then(|pid| i32::try_from(pid).ok()).filter(|&pid| pid >= 0).map(Pid)
}

#[derive(Debug, Clone)]
pub(super) struct RqFields {
    nr: Option<FieldRef>,
    h: Option<FieldRef>,
    hrun: Option<FieldRef>,
    hdel: Option<FieldRef>,
    ih: Option<FieldRef>,
    pend: Option<FieldRef>,
    util: Option<FieldRef>,
    uest: Option<FieldRef>,
    load: Option<FieldRef>,
    run: Option<FieldRef>,
    cap: Option<FieldRef>,
    avgidle: Option<FieldRef>,
    wavgidle: Option<FieldRef>,
    curr: Option<FieldRef>,
    cwflips: Option<FieldRef>,
    clastw: Option<FieldRef>,
    cwdecay: Option<FieldRef>,
    cload: Option<FieldRef>,
    cflags: Option<FieldRef>,
    cncpus: Option<FieldRef>,
    cpolicy: Option<FieldRef>,
    istamp: Option<FieldRef>,
    hload: Option<FieldRef>,
    lhload: Option<FieldRef>,
    scost: Option<FieldRef>,
    hic: Option<FieldRef>,
    nis: Option<FieldRef>,
}

impl RqFields {
    pub(super) fn find(format: &EventFormat) -> Self {
        let field = |name| format.field_ref(name).ok();
        Self {
            nr: field("nr"),
            h: field("h"),
            hrun: field("hrun"),
            hdel: field("hdel"),
            ih: field("ih"),
            pend: field("pend"),
            util: field("util"),
            uest: field("uest"),
            load: field("load"),
            run: field("run"),
            cap: field("cap"),
            avgidle: field("avgidle"),
            wavgidle: field("wavgidle"),
            curr: field("curr"),
            cwflips: field("cwflips"),
            clastw: field("clastw"),
            cwdecay: field("cwdecay"),
            cload: field("cload"),
            cflags: field("cflags"),
            cncpus: field("cncpus"),
            cpolicy: field("cpolicy"),
            istamp: field("istamp"),
            hload: field("hload"),
            lhload: field("lhload"),
            scost: field("scost"),
            hic: field("hic"),
            nis: field("nis"),
        }
    }

    pub(super) fn read(&self, target: Cpu, raw: &RawEvent<'_>) -> SisRq {
        let wide = |field: Option<FieldRef>| field.and_then(|field| field.u64(raw));
        let narrow = |field: Option<FieldRef>| wide(field).map(|value| value as u32);
        SisRq {
            target,
            nr_running: narrow(self.nr),
            h_nr_running: narrow(self.h),
            h_nr_runnable: narrow(self.hrun),
            h_nr_delayed: narrow(self.hdel),
            idle_h_nr_running: narrow(self.ih),
            ttwu_pending: wide(self.pend).map(|pending| pending != 0),
            util_avg: wide(self.util),
            util_est: wide(self.uest),
            load_avg: wide(self.load),
            runnable_avg: wide(self.run),
            cpu_capacity: wide(self.cap),
            avg_idle_ns: wide(self.avgidle),
            wake_avg_idle_ns: wide(self.wavgidle),
            curr: pid(self.curr, raw),
            curr_wakee_flips: narrow(self.cwflips),
            curr_last_wakee: pid(self.clastw, raw),
            curr_wakee_flip_decay_jiffies: wide(self.cwdecay),
            curr_load_avg: wide(self.cload),
            curr_flags: wide(self.cflags),
            curr_nr_cpus_allowed: narrow(self.cncpus),
            curr_policy: narrow(self.cpolicy),
            idle_stamp_ns: wide(self.istamp),
            h_load: wide(self.hload),
            last_h_load_jiffies: wide(self.lhload),
            avg_scan_cost_ns: wide(self.scost),
            has_idle_cores: wide(self.hic).map(|has| has as u32 != 0),
            nr_idle_scan: narrow(self.nis),
        }
    }
}
