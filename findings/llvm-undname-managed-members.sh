#!/usr/bin/env bash
# LLVM 14.0.6 (Debian 12, llvm-14 1:14.0.6-12): llvm-undname gives functions of C++/CX a return type that they lack.
#
# A good guess: a name with the qualifier $A of C++/CX, which the runtime vccorlib140.dll exports, is demangled or
# refused. Seen: it depends on the letter before. The constructor of Platform::Object (Q, public) is invalid; the
# virtual function Dispose (U, public virtual), which returns void (X), is shown as returning void&, a type that C++
# does not have. Without the qualifier it returns void.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
mapfile -t names <<'NAMES'
??0Object@Platform@@QE$AAA@XZ
?<Dispose>@String@Platform@@UE$AAAXXZ
?<Dispose>@String@Platform@@UEAAXXZ
NAMES
for name in "${names[@]}"; do
    { llvm llvm-undname "$name" 2>&1 || true; } | sed '/^$/d'
done | tee seen
diff seen - <<'SEEN'
??0Object@Platform@@QE$AAA@XZ
error: Invalid mangled name
?<Dispose>@String@Platform@@UE$AAAXXZ
public: virtual void & __cdecl Platform::String::<Dispose>(void)
?<Dispose>@String@Platform@@UEAAXXZ
public: virtual void __cdecl Platform::String::<Dispose>(void)
SEEN
