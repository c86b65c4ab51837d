#!/usr/bin/env bash
# undname 0.2 (PyPI; the undname of Wine): an empty parameter pack becomes a namespace "V".
#
# A good guess: ??$f@$$V@@YAXXZ, which is f<>() of a template with a pack (Visual C++ and clang write $$V for the empty
# one), is f<>, as llvm-undname has it, or refused. Seen: it is V::f, without an error. A function of a class gets a
# class V within that class, and numbers of earlier names are one off, so that std::make_shared<S>() returns a
# V::shared_ptr<S>. If an argument follows the pack, as in std::make_unique, the name is refused. Samples of
# emplace_back() and of emplace_back(1) are in different classes in a report.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
cat > names <<'TEXT'
??$f@$$V@@YAXXZ
??$emplace_back@$$V@?$vector@HV?$allocator@H@std@@@std@@QEAAAEAHXZ
??$make_shared@US@@$$V@std@@YA?AV?$shared_ptr@US@@@0@XZ
??$make_unique@US@@$$V$0A@@std@@YA?AV?$unique_ptr@US@@U?$default_delete@US@@@std@@@0@XZ
TEXT
{
    llvm llvm-undname < names | grep -vE '^(\?|$)'
    python undname==0.2 cffi==2.1.1 <<'SCRIPT'
import undname

for name in open("names").read().split():
    try:
        print(undname.undname(name))
    except undname.UndnameFailure:
        print("is refused")
SCRIPT
} | tee seen
diff seen - <<'SEEN'
void __cdecl f<>(void)
public: int & __cdecl std::vector<int, class std::allocator<int>>::emplace_back<>(void)
class std::shared_ptr<struct S> __cdecl std::make_shared<struct S>(void)
class std::unique_ptr<struct S, struct std::default_delete<struct S>> __cdecl std::make_unique<struct S, 0>(void)
void __cdecl V::f(void)
public: int & __ptr64 __cdecl std::vector<int,class std::allocator<int> >::V::emplace_back(void) __ptr64
class V::shared_ptr<struct S> __cdecl std::V::make_shared(void)
is refused
SEEN
