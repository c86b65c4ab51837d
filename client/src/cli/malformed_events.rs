//! Malformed events, each with the position that the message names.

use std::str::FromStr;

use halprof::event::{Malformed, SampledEvent};

use counts::event_list::EventList;
use counts::names::Names;

/// Malformed arguments of `stat -e`, the character of which the message speaks, and a part of it.
const COUNTED: &[(&str, usize, &str)] = &[
    ("", 1, "the name of a source is empty"),
    ("A,", 3, "the name of a source is empty"),
    (",A", 1, "the name of a source is empty"),
    ("A,,B", 3, "the name of a source is empty"),
    ("A:", 2, "\":\" is not a mode"),
    ("A:x", 2, "\":x\" is not a mode"),
    ("A:uu", 2, "\":uu\" is not a mode"),
    ("A:kk", 2, "\":kk\" is not a mode"),
    ("A:u:k", 2, "\":u:k\" is not a mode"),
    ("A,B:q", 4, "\":q\" is not a mode"),
    ("A:p", 2, "precise events are sampled and not counted"),
    ("A,B:up", 4, "precise events are sampled and not counted"),
    ("A:pppp", 2, "\":pppp\" is not a mode"),
    ("A:DD", 2, "\":DD\" is not a mode"),
    ("A:uDx", 2, "\":uDx\" is not a mode"),
    (":u", 1, "the name of a source is empty"),
    (":D", 1, "the name of a source is empty"),
    ("A,:k", 3, "the name of a source is empty"),
    ("A:ü", 2, "\":ü\" is not a mode"),
    ("A:U", 2, "\":U\" is not a mode"),
    ("{", 2, "\"{\" has no closing brace"),
    ("}", 1, "\"}\" has a brace in the wrong place"),
    ("{}", 2, "the name of a source is empty"),
    ("{A", 3, "\"{A\" has no closing brace"),
    ("A}", 2, "\"A}\" has a brace in the wrong place"),
    ("{A,}", 4, "the name of a source is empty"),
    ("{,A}", 2, "the name of a source is empty"),
    ("{A},", 5, "the name of a source is empty"),
    (",{A}", 1, "the name of a source is empty"),
    ("{A}{B}", 4, "\"{B}\" stands behind a group"),
    ("{A}B", 4, "\"B\" stands behind a group"),
    ("{{A}}", 2, "\"{{A\" has a group within a group"),
    ("{A,{B}}", 4, "\"{A,{B\" has a group within a group"),
    ("A{B}", 2, "\"A{B}\" has a brace in the wrong place"),
    ("{A}:", 4, "\":\" is not a mode"),
    ("{ü}:x", 4, "\":x\" is not a mode"),
    ("{A}:x", 4, "\":x\" is not a mode"),
    ("{A}:p", 4, "\":p\" is for groups that are sampled, and groups are"),
    ("{A}u", 4, "\"u\" stands behind a group"),
    ("{A}:uu", 4, "\":uu\" is not a mode"),
    ("{A:u}:k", 2, "A is in one mode, and its group in another"),
    ("{A:p}", 3, "precise events are sampled and not counted"),
    ("{A},{B", 7, "\"{B\" has no closing brace"),
    ("{A},{B,C:z}", 9, "\":z\" is not a mode"),
    ("{A,cpu/event=0x1000/}", 8, "event is from 0 to 0xfff, not \"0x1000\""),
    ("{A,B}:D:u", 6, "\":D:u\" is not a mode"),
    ("{A};{B}", 4, "\";{B}\" stands behind a group"),
    ("4294967296", 1, "no source has a number above 4294967295"),
    ("0x100000000", 1, "no source has a number above 4294967295"),
    ("99999999999999999999999", 1, "no source has a number above 4294967295"),
    ("A,0xfffffffff", 3, "no source has a number above 4294967295"),
    ("{A,18446744073709551616}", 4, "no source has a number above 4294967295"),
    ("cpu/", 5, "\"cpu/\" has no closing slash"),
    ("cpu//", 5, "a term is empty"),
    ("cpu/event", 10, "\"cpu/event\" has no closing slash"),
    ("cpu/event=1", 12, "\"cpu/event=1\" has no closing slash"),
    ("cpu/event=1/x", 13, "\":x\" is not a mode"),
    ("cpu/event=1/uu", 13, "\":uu\" is not a mode"),
    ("cpu/event=1/:", 13, "\":\" is not a mode"),
    ("cpu/event=1/::u", 13, "\"::u\" is not a mode"),
    ("cpu/event=/", 5, "event is from 0 to 0xfff, not \"\""),
    ("cpu/event=0x1000/", 5, "event is from 0 to 0xfff, not \"0x1000\""),
    ("cpu/event=4096/", 5, "event is from 0 to 0xfff, not \"4096\""),
    ("cpu/event=-1/", 5, "event is from 0 to 0xfff, not \"-1\""),
    ("cpu/event=+1/", 5, "event is from 0 to 0xfff, not \"+1\""),
    ("cpu/event=0xg/", 5, "event is from 0 to 0xfff, not \"0xg\""),
    ("cpu/event=1e3/", 5, "event is from 0 to 0xfff, not \"1e3\""),
    ("cpu/event=99999999999999999999/", 5, "event is from 0 to 0xfff, not \"99999999999999999999\""),
    ("cpu/umask=1/", 5, "which event? It begins with event="),
    ("cpu/event=1,/", 13, "a term is empty"),
    ("cpu/,event=1/", 5, "a term is empty"),
    ("cpu/event=1,,umask=1/", 13, "a term is empty"),
    ("cpu/event=1,umask=0x10000/", 13, "umask is from 0 to 0xffff, not \"0x10000\""),
    ("cpu/event=1,umask/", 13, "umask takes a value: umask=0x1"),
    ("cpu/event=1,cmask=256/", 13, "cmask is from 0 to 0xff, not \"256\""),
    ("cpu/event=1,event=2/", 13, "event is given twice"),
    ("cpu/event=1,inv=2/", 13, "inv is 0 or 1, not \"2\""),
    ("cpu/event=1,edge=yes/", 13, "edge is 0 or 1, not \"yes\""),
    ("cpu/event=1,any=/", 13, "any is 0 or 1, not \"\""),
    ("cpu/event=1,eq=-1/", 13, "eq is 0 or 1, not \"-1\""),
    ("cpu/event=1,counters=0/", 13, "counters=0 leaves the event no counter"),
    ("cpu/event=1,counters=0x100000000/", 13, "counters is from 0 to 0xffffffff, not \"0x100000000\""),
    ("cpu/event=1,counters=1,counters=2/", 24, "counters is given twice"),
    ("cpu/event=1,config=0x4300c0/", 5, "config is the whole event, and event, umask, cmask, inv,"),
    ("cpu/config=0x8000000000/", 5, "config=0x8000000000 sets bit 39, which is no part of an event"),
    ("cpu/event=1,config1=3/", 13, "the second register has a term of its own: offcore_rsp,"),
    ("cpu/event=1,period=3/", 13, "an interval stands behind the event: @100k"),
    ("cpu/event=1,UMASK=1/", 13, "\"UMASK\" is none of event, umask, cmask, inv, edge, any,"),
    ("cpu/event=1,ldlat=0x10000/", 13, "ldlat is from 0 to 0xffff, not \"0x10000\""),
    ("cpu/event=1,frontend=0x1000000/", 13, "frontend is from 0 to 0xffffff, not \"0x1000000\""),
    ("cpu/event=1,offcore_rsp=0x10000000000000000/", 13, "offcore_rsp is from 0 to 0xffffffffffffffff, not"),
    ("cpu/event=1,frontend=1,ldlat=3/", 24, "an event has one of offcore_rsp, ldlat and frontend"),
    ("A,cpu/event=1,umask=zz/,B", 15, "umask is from 0 to 0xffff, not \"zz\""),
    ("cpu_core/", 10, "\"cpu_core/\" has no closing slash"),
    ("cpu_core//", 10, "write cpu_core/SOURCE/ or cpu_core/event=0xC0,umask=0x00/"),
    ("cpu_core/TotalCycles", 21, "\"cpu_core/TotalCycles\" has no closing slash"),
    ("cpu_core/TotalCycles/x", 22, "\":x\" is not a mode"),
    ("cpu_core/TotalCycles:u/", 10, "write cpu_core/SOURCE/ or cpu_core/event=0xC0,umask=0x00/"),
    ("cpu_core/TotalCycles,inv/", 10, "\"TotalCycles\" is none of event, umask, cmask, inv, edge,"),
    ("cpu_core/umask=1/", 10, "which event? It begins with event="),
    ("cpu_atom/event=1,any=2/", 18, "any is 0 or 1, not \"2\""),
    ("cpu_atom/NAME,ldlat=x/", 15, "ldlat is from 0 to 0xffff, not \"x\""),
    ("cpu/NAME,ldlat=70000/", 10, "ldlat is from 0 to 0xffff, not \"70000\""),
    ("NAME:ldlat=", 6, "ldlat is from 0 to 0xffff, not \"\""),
    ("NAME:ldlat=-3", 6, "ldlat is from 0 to 0xffff, not \"-3\""),
    ("NAME:offcore_rsp=0xq", 6, "offcore_rsp is from 0 to 0xffffffffffffffff, not \"0xq\""),
    ("NAME:frontend=0x1000000:u", 6, "frontend is from 0 to 0xffffff, not \"0x1000000\""),
    (":ldlat=30", 1, "the name of a source is empty"),
    ("Tötal", 2, "\"ö\" is in no name"),
    ("A,日本", 3, "\"日\" is in no name"),
    ("日本:u", 1, "\"日\" is in no name"),
    ("{A,B\u{200b}}", 5, "\"\\u{200b}\" is in no name"),
    ("A B", 2, "\" \" is in no name"),
    ("A\tB", 2, "\"\\t\" is in no name"),
    ("A\u{1b}[31m", 2, "\"\\u{1b}\" is in no name"),
    ("\"A\"", 1, "\"\\\"\" is in no name"),
    ("A;B", 2, "\";\" is in no name"),
    ("A@1000", 2, "\"@\" is in no name"),
    ("100%", 4, "\"%\" is in no name"),
    ("A|B", 2, "\"|\" is in no name"),
    ("A,cpu/event=1,ü=1/", 15, "\"ü\" is none of event, umask, cmask, inv, edge, any, eq,"),
];

/// Malformed arguments of `record -e`.
const SAMPLED: &[(&str, usize, &str)] = &[
    ("A@", 3, "is not a number"),
    ("A:ü@x", 5, "is not a number"),
    ("A@0", 3, "an interval of 0 gives no samples"),
    ("A,B@1k,C@-1", 10, "is not a number"),
    ("A@1@2", 3, "is not a number"),
    ("A@4294967296", 3, "is more than 4294967295"),
    ("A:px@1k", 2, "\":px\" is not a mode"),
    ("@1k", 1, "the name of a source is empty"),
    ("{A,B}", 1, "\"{\" is in no name"),
    ("cpu/event=1,umask=zz/p@1k", 13, "umask is from 0 to 0xffff"),
];

/// Returns the texts that parse, or whose message is not the expected one.
fn wrong<T: FromStr<Err = Malformed>>(texts: &[(&'static str, usize, &str)]) -> Vec<(&'static str, Option<Malformed>)> {
    let is_right = |found: &Result<T, Malformed>, position: usize, part: &str| {
        let error = found.as_ref().err().map(ToString::to_string);
        error.is_some_and(|why| why.starts_with(&format!("at character {position}: ")) && why.contains(part))
    };
    let found = texts.iter().map(|(text, position, part)| (text, text.parse::<T>(), position, part));
    let wrong = found.filter(|(_, found, position, part)| !is_right(found, **position, part));
    wrong.map(|(text, found, ..)| (*text, found.err())).collect()
}

#[test]
fn every_malformed_event_has_a_message_with_its_position() {
    assert!(COUNTED.len() >= 100);
    assert_eq!(wrong::<EventList>(COUNTED), []);
    assert_eq!(wrong::<Names<SampledEvent>>(SAMPLED), []);
}
