//! Data of Rust: statics, enumerations, generics, and fields that the compiler has reordered.
#![no_std]
#![no_main]

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char};
use core::mem::size_of_val;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

#[repr(C)]
pub struct Known {
    address: *const u8,
    size: usize,
    path: *const c_char,
    type_name: *const c_char,
    member: *const c_char,
}

unsafe impl Sync for Known {}

const fn known(address: *const u8, size: usize, path: &CStr, type_name: &CStr, member: &CStr) -> Known {
    Known { address, size, path: path.as_ptr(), type_name: type_name.as_ptr(), member: member.as_ptr() }
}

macro_rules! at {
    ($place:expr, $path:literal, $type:literal, $member:literal) => {
        unsafe { known((&raw const $place).cast(), size_of_val(&*&raw const $place), $path, $type, $member) }
    };
}

pub struct Row {
    pub tag: u8,
    pub key: u64,
    pub lock: (u16, u32),
}

pub struct Table {
    pub count: AtomicU64,
    pub rows: [Row; 3],
    pub best: Option<&'static Row>,
}

pub struct Ring<T, const N: usize> {
    pub items: UnsafeCell<[T; N]>,
    pub head: AtomicU32,
}

unsafe impl<T, const N: usize> Sync for Ring<T, N> {}

#[repr(C)]
pub union Bits {
    pub whole: u32,
    pub halves: [u16; 2],
}

pub enum Shape {
    Circle { radius: u32 },
    Square(u64),
}

const ROW: Row = Row { tag: 1, key: 2, lock: (3, 4) };
pub static TABLE: Table = Table { count: AtomicU64::new(0), rows: [ROW; 3], best: None };
pub static RING: Ring<u16, 5> = Ring { items: UnsafeCell::new([0; 5]), head: AtomicU32::new(0) };
pub static mut BITS: Bits = Bits { whole: 0 };
pub static SHAPES: [Shape; 2] = [Shape::Circle { radius: 1 }, Shape::Square(2)];
pub static FLAG: bool = true;
pub static TEXT: &str = "text";

#[unsafe(link_section = ".known")]
#[used]
pub static KNOWN: [Known; 14] = [
    at!(TABLE.count, c"statics::TABLE.count.v.value", c"unsigned __int64", c"statics::Table.count.v.value@0"),
    at!(TABLE.rows[2].key, c"statics::TABLE.rows[2].key", c"unsigned __int64", c"statics::Row.key@0"),
    at!(TABLE.rows[1].tag, c"statics::TABLE.rows[1].tag", c"unsigned char", c"statics::Row.tag@16"),
    at!(TABLE.rows[1].lock.1, c"statics::TABLE.rows[1].lock.__1", c"unsigned", c"statics::Row.lock.__1@12"),
    at!(
        TABLE.best,
        c"statics::TABLE.best.variant1.value.__0|tag",
        c"statics::Row*|unsigned __int64",
        c"statics::Table.best.variant1.value.__0|tag@80"
    ),
    at!(RING.head, c"statics::RING.head.v.value", c"unsigned", c"statics::Ring<u16,5>.head.v.value@0"),
    known(
        (&raw const RING.items).cast(),
        2,
        c"statics::RING.items.value[0]",
        c"unsigned short",
        c"statics::Ring<u16,5>.items.value[]@4",
    ),
    at!(
        BITS.halves[1],
        c"statics::BITS.whole+0x2|halves[1]",
        c"unsigned|unsigned short",
        c"statics::Bits.whole|halves[]@0"
    ),
    at!(BITS.whole, c"statics::BITS.whole|halves[0]", c"unsigned|unsigned short", c"statics::Bits.whole|halves[]@0"),
    at!(FLAG, c"statics::FLAG", c"bool", c""),
    at!(TEXT, c"statics::TEXT.data_ptr", c"unsigned char*", c"ref$<str$>.data_ptr@0"),
    known(
        (&raw const SHAPES).cast(),
        4,
        c"statics::SHAPES[0].tag",
        c"unsigned",
        c"enum2$<statics::Shape>.tag@0",
    ),
    known(
        (&raw const SHAPES).cast::<u8>().wrapping_add(4),
        4,
        c"statics::SHAPES[0].variant0.value.radius",
        c"unsigned",
        c"enum2$<statics::Shape>.variant0.value.radius@4",
    ),
    known(
        (&raw const SHAPES).cast::<u8>().wrapping_add(24),
        8,
        c"statics::SHAPES[1].variant1.value.__0",
        c"unsigned __int64",
        c"enum2$<statics::Shape>.variant1.value.__0@8",
    ),
];

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

#[unsafe(no_mangle)]
pub extern "C" fn entry() -> u32 {
    let sum = TABLE.count.fetch_add(1, Ordering::Relaxed) as u32 + RING.head.load(Ordering::Relaxed);
    let shape = match &SHAPES[unsafe { BITS.halves[0] } as usize & 1] {
        Shape::Circle { radius } => *radius,
        Shape::Square(side) => *side as u32,
    };
    sum + shape + u32::from(FLAG) + TEXT.len() as u32 + KNOWN[0].size as u32
}
