//! (being written)
#![no_std]
extern crate wdk_panic;
#[global_allocator]
static GLOBAL: wdk_alloc::WdkAllocator = wdk_alloc::WdkAllocator;
