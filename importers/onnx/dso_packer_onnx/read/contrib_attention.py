"""The rows of read/contrib.py that are attention, and the rotary embeddings of its keys."""

from __future__ import annotations

from .contrib_bytes import integer_product
from .contrib_text import (
    LAST_AXES_SINCE,
    Call,
    UnsupportedError,
    cast,
    extent,
    integer_range,
    integers,
    number,
    ranked,
    scalar,
)

_HEADS_FIRST = "Transpose<perm = [0, 2, 1, 3]>"
_AXES_SINCE = 13  # the opset from which the axes of Unsqueeze are an input


def _heads(name: str, value: str, count: int) -> str:
    """Return (batch, rows, columns) as (batch, heads, rows, size)."""
    shape = integers(f"{name}s", 0, 0, count, -1)
    return f"{shape} {name}r = Reshape({value}, {name}s) {name} = {_HEADS_FIRST}({name}r)"


def _attended(call: Call, mask: str) -> str:
    """Return softmax of q and k times v, of (batch, heads, rows, size), as `y0`."""
    text = " kt = Transpose<perm = [0, 1, 3, 2]>(k) p = MatMul(q, kt)"
    if call.number("scale", 0.0):
        text += f"{number('f', call.number('scale', 0.0), 'p', call)} w = Mul(p, f)"
    else:
        text += f" hs = Shape(q){integers('li', 3)} hn = Gather(hs, li)"
        text += f"{cast('hf', 'hn', 'p', call)} hr = Sqrt(hf) w = Div(p, hr)"
    if cap := call.number("softcap", 0.0):
        text += f"{number('cap', cap, 'p', call)} cd = Div(w, cap) ct = Tanh(cd) c = Mul(ct, cap)"
    capped = "c" if cap else "w"
    text += f" z = Add({capped}, {mask})" if mask else f" z = Identity({capped})"
    text += f" o = Softmax<axis = -1>(z) x = MatMul(o, v) xt = {_HEADS_FIRST}(x)"
    return f"{text}{integers('ys', 0, 0, -1)} y0 = Reshape(xt, ys)"


def _of_heads(call: Call, mask: str) -> str:
    call.refuse("unidirectional")
    heads = call.count("num_heads")
    return "".join(_heads(one, f"{one}i", heads) for one in "qkv") + _attended(call, mask)


def _thirds(axis: int, call: Call) -> str:
    count = ", num_outputs = 3" if call.opset >= LAST_AXES_SINCE else ""
    return f"Split<axis = {axis}{count}>"


def multi_head_attention(call: Call) -> str:
    """Return attention to keys that are not packed, nor cached."""
    if call.has(4) or any(call.given[6:]) or not (call.has(1) and call.has(2)):
        raise UnsupportedError("packed or cached keys, or a key_padding_mask")
    text = f" bq, bk, bv = {_thirds(0, call)}(i3)" if call.has(3) else ""
    for i, name in enumerate("qkv"):
        text += ranked(f"{name}x", i, 3, call)
        text += f" {name}i = {f'Add({name}x, b{name})' if call.has(3) else f'Identity({name}x)'}"
    return text + _of_heads(call, "i5" if call.has(5) else "")


def attention(call: Call) -> str:
    """Return a product with packed weights, and attention of its thirds."""
    if call.has(4) or any(call.given[6:]) or call.attributes.get("qkv_hidden_sizes"):
        raise UnsupportedError("past keys, or sizes of q, k and v")
    return _projected(" w0 = MatMul(i0, i1)", 3, 5, call)


def quantised_attention(call: Call) -> str:
    """Return the same of integers."""
    if call.has(8):
        raise UnsupportedError("past keys")
    zero = "i6" if call.has(6) else ""
    return _projected(integer_product("w0", "i0", "i3", zero, (4, 7), call), 5, 9, call)


def _projected(text: str, keys: int, bias: int, call: Call) -> str:
    """Return attention of `w0` and the bias `i2`; `keys` and `bias` are the inputs of masks."""
    call.refuse("do_rotary")
    text += " wb = Add(w0, i2)" if call.has(2) else " wb = Identity(w0)"
    text += f" qi, ki, vi = {_thirds(2, call)}(wb)"
    mask = ""
    if call.has(keys):  # of (batch, keys), not lengths
        low = call.number("mask_filter_value", -10000.0)
        text += f"{ranked('mt', keys, 2, call)}{cast('mf', 'mt', 'w0', call)}"
        text += f"{number('mo', 1.0, 'w0', call)}{number('ml', low, 'w0', call)}"
        text += f" mn = Sub(mo, mf) mm = Mul(mn, ml){integers('ms', 0, 1, 1, -1)}"
        text += " mask = Reshape(mm, ms)"
        mask = "mask"
    if call.has(bias):
        text += f" bias = {f'Add({mask}, i{bias})' if mask else f'Identity(i{bias})'}"
        mask = "bias"
    return text + _of_heads(call, mask)


def _check_opset(call: Call) -> None:
    if call.opset < _AXES_SINCE:
        raise UnsupportedError(f"an opset before {_AXES_SINCE}")


# ---- Rotary embeddings ----


def _turned(name: str, of: str, half: int, size: int, is_interleaved: bool) -> str:
    """Return pairs of a value's last axis turned by `cos` and `sin`; its further columns remain.

    `size` is the extent of the axis, or 0 if it is not known.
    """
    step, second = (2, 1) if is_interleaved else (1, half)
    text = integers(f"{name}m", -1) + integers(f"{name}n", step) + integers(f"{name}e", 2 * half)
    ends = (2 * half, 2 * half) if is_interleaved else (half, 2 * half)
    for part, begin, end in zip("ab", (0, second), ends, strict=True):
        text += integers(f"{name}{part}0", begin) + integers(f"{name}{part}1", end)
        bounds = f"{name}{part}0, {name}{part}1, {name}m, {name}n"
        text += f" {name}{part} = Slice({of}, {bounds})"
    for index, first, sign, other in ((0, "a", "Sub", "b"), (1, "b", "Add", "a")):
        text += (
            f" {name}{index}c = Mul({name}{first}, cos) {name}{index}s = Mul({name}{other}, sin)"
        )
        text += f" {name}{index} = {sign}({name}{index}c, {name}{index}s)"
    if is_interleaved:
        text += f" {name}0u = Unsqueeze({name}0, {name}m) {name}1u = Unsqueeze({name}1, {name}m)"
        text += (
            f" {name}w = Concat<axis = -1>({name}0u, {name}1u){integers(f'{name}k', 0, 0, 0, -1)}"
        )
        text += f" {name}t = Reshape({name}w, {name}k)"
    else:
        text += f" {name}t = Concat<axis = -1>({name}0, {name}1)"
    if size == 2 * half:
        return f"{text} {name} = Identity({name}t)"
    text += f"{integers(f'{name}z', 2**31 - 1)} {name}l = Slice({of}, {name}e, {name}z, {name}m)"
    return f"{text} {name} = Concat<axis = -1>({name}t, {name}l)"


def _angles(table: int, positions: str, axis: int | None) -> str:
    """Return `cos` and `sin` of positions, from two inputs; `axis` is added for the heads."""
    text = "" if axis is None else integers("ax", axis)
    for index, name in enumerate(("cos", "sin")):
        rows = f"Gather(i{table + index}, {positions})"
        text += f" {name} = {rows}" if axis is None else f" {name}g = {rows}"
        text += "" if axis is None else f" {name} = Unsqueeze({name}g, ax)"
    return text


def _half(table: int, call: Call) -> int:
    """Return how many pairs of columns are turned."""
    half = call.extent(table, 1)
    if not half:
        raise UnsupportedError("a cos_cache whose width the model does not say")
    return half


def rotary_embedding(call: Call) -> str:
    """Return (batch, heads, rows, size) or (batch, rows, columns), turned by positions."""
    _check_opset(call)
    call.refuse("is_packed_batching")
    rank, kind, half = call.rank(0), call.rank(1), _half(2, call)
    if rank not in (3, 4) or kind not in (1, 2):
        text = f"an input of {rank} axes and position_ids of {kind}; the model must say both"
        raise UnsupportedError(text)
    width, heads = call.count("rotary_embedding_dim"), call.count("num_heads")
    size = call.extent(0, 3) if rank == 4 else 0 if width else 2 * half
    if width and (width != 2 * half or not heads):
        text = f"rotary_embedding_dim {width}, a cos_cache of {half} and num_heads {heads}"
        raise UnsupportedError(text)
    text = " x = Identity(i0)"
    if rank == 3:
        text = (
            f"{integers('xs', 0, 0, *((heads, -1) if width else (-1, size)))} x = Reshape(i0, xs)"
        )
    positions = "i1"
    if kind == 1:  # the first one
        text += f"{extent('rows', 'x', 1 if rank == 3 else 2)}{integer_range('range', 'rows')}"
        text += " positions = Add(range, i1)"
        positions = "positions"
    axis = {(3, 1): 1, (3, 2): 2, (4, 1): None, (4, 2): 1}[rank, kind]
    text += _angles(2, positions, axis)
    text += _turned("t", "x", half, size, bool(call.count("interleaved")))
    if rank == 4:
        return f"{text} y0 = Identity(t)"
    return f"{text}{integers('ys', 0, 0, -1)} y0 = Reshape(t, ys)"


# ---- Attention whose queries share keys, with a cache ----


def group_query_attention(call: Call) -> str:
    """Return attention to past keys and new ones, which are outputs.

    Each batch has as many past keys as the cache has rows: the call refuses another length. A
    first call may have shorter lengths, of rows whose results count for nothing.
    """
    _check_opset(call)
    call.refuse("qk_output", "sliding_window_cache", "kv_cache_bit_width")
    if call.count("smooth_softmax") > 0:
        raise UnsupportedError("smooth_softmax")
    if any(call.given[11:]) or call.count("causal", 1) != 1:
        raise UnsupportedError("further inputs, or keys that are not causal")
    if call.has(1) != call.has(2) or not call.has(3) == call.has(4) <= call.has(5):
        raise UnsupportedError("keys without values, or a cache without seqlens_k")
    if call.attributes.get("local_window_size") == 0:
        raise UnsupportedError("local_window_size 0")
    text = _projections(call) + extent("rows", "qh", 2)
    if call.has(3):
        text += f"{extent('past', 'i3', 2)} all = Add(past, rows)"
        text += f"{integer_range('plain', 'all', 'past')}{_checked_lengths()} at = Add(plain, zero)"
    else:
        text += f" all = Identity(rows){integer_range('at', 'all')}"
    text += _rotated(call) if call.count("do_rotary") else " q = Identity(qh) kn = Identity(kh)"
    for index, new in ((3, "kn"), (4, "vh")):
        joined = f"Concat<axis = 2>(i{index}, {new})" if call.has(3) else f"Identity({new})"
        text += f" y{index - 2} = {joined}"
    text += _repeated("k", "y1", call) + _repeated("v", "y2", call)
    return text + _causal(call) + _attended(call, "mask")


def _projections(call: Call) -> str:
    """Return `qh`, `kh`, `vh` of (batch, heads, rows, size), which one input may hold."""
    heads, shared = call.count("num_heads"), call.count("kv_num_heads")
    if heads < 1 or shared < 1 or heads % shared:
        raise UnsupportedError(f"num_heads {heads} and kv_num_heads {shared}")
    if call.has(1):
        parts = zip("qkv", (heads, shared, shared), strict=True)
        ranks = "".join(ranked(f"{name}x", i, 3, call) for i, name in enumerate("qkv"))
        return ranks + "".join(_heads(f"{name}h", f"{name}x", count) for name, count in parts)
    text = f"{ranked('qkv', 0, 3, call)}{integers('ps', 0, 0, heads + 2 * shared, -1)}"
    text += f" packed = Reshape(qkv, ps){integers('counts', heads, shared, shared)}"
    text += " qp, kp, vp = Split<axis = 2>(packed, counts)"
    return text + "".join(f" {name}h = {_HEADS_FIRST}({name}p)" for name in "qkv")


def _checked_lengths() -> str:
    """Return `zero`, which depends on the lengths: 0 if each is that of the cache and the rows."""
    text = f" lengths = Cast<to = 7>(i5){scalar('l0', 0)}{scalar('l1', 1)} last = Sub(all, l1)"
    text += " is_later = Cast<to = 9>(past) least = Where(is_later, last, l0)"
    text += " [seqlens_k] checked = Clip(lengths, least, last) distance = Sub(checked, lengths)"
    text += " wrong = Abs(distance) outside = ReduceMax<keepdims = 0>(wrong)"
    return f"{text}{integers('nothing', 0)} zero = Gather(nothing, outside)"


def _rotated(call: Call) -> str:
    half, size = _half(7, call), _size_of_heads(call)
    axis, positions = (1, "i9") if call.has(9) else (None, "at")
    text, is_interleaved = _angles(7, positions, axis), bool(call.count("rotary_interleaved"))
    pairs = (("q", "qh"), ("kn", "kh"))
    return text + "".join(_turned(*pair, half, size, is_interleaved) for pair in pairs)


def _size_of_heads(call: Call) -> int:
    """Return the extent of each head, or 0 if the model does not say it."""
    heads, shared = call.count("num_heads"), call.count("kv_num_heads")
    count = heads if call.has(1) else heads + 2 * shared
    return call.extent(3, 3) or call.extent(0, 2) // count


def _repeated(name: str, of: str, call: Call) -> str:
    """Return keys or values once for each head of the queries."""
    heads, shared = call.count("num_heads"), call.count("kv_num_heads")
    if heads == shared:
        return f" {name} = Identity({of})"
    text = f"{integers(f'{name}1', 2)} {name}u = Unsqueeze({of}, {name}1)"
    text += (
        f"{integers(f'{name}2', 1, 1, heads // shared, 1, 1)} {name}e = Expand({name}u, {name}2)"
    )
    text += f" {name}f = Shape({of}){integers(f'{name}3', 0)}{integers(f'{name}4', 2, 3)}"
    text += f" {name}b = Gather({name}f, {name}3) {name}r = Gather({name}f, {name}4)"
    text += f"{integers(f'{name}5', heads)} {name}s = Concat<axis = 0>({name}b, {name}5, {name}r)"
    return f"{text} {name} = Reshape({name}e, {name}s)"


def _causal(call: Call) -> str:
    """Return `mask`, which hides later keys, and earlier ones outside of a window."""
    window = call.count("local_window_size", -1)
    text = f"{integer_range('keys', 'all')}{integers('c1', 1)} row = Unsqueeze(at, c1)"
    text += " seen = LessOrEqual(keys, row)"
    if window >= 0:
        text += f"{scalar('size', window)} first = Sub(row, size) near = Greater(keys, first)"
        text += " shown = And(seen, near)"
    numbers = "".join(
        number(name, value, "qh", call) for name, value in (("open", 0.0), ("shut", -1e9))
    )
    bias = f"Where({'shown' if window >= 0 else 'seen'}, open, shut)"
    return f"{text}{numbers} " + (
        f"hidden = {bias} mask = Add(hidden, i10)" if call.has(10) else f"mask = {bias}"
    )
