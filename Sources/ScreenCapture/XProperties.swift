import CXCB

extension XConnection {
    /// The number that the server has for a name.
    func atom(_ name: String) throws(XFailure) -> xcb_atom_t {
        try reply(
            unsafe xcb_intern_atom(handle, 0, UInt16(clamping: name.utf8.count), name).sequence,
            as: xcb_intern_atom_reply_t.self
        ).value.atom
    }

    /// The name of an atom; empty for 0.
    func name(of atom: xcb_atom_t) throws(XFailure) -> String {
        guard atom != 0 else { return "" }
        let reply = try reply(
            unsafe xcb_get_atom_name(handle, atom).sequence,
            as: xcb_get_atom_name_reply_t.self
        )
        let bytes = unsafe UnsafeRawBufferPointer(
            start: xcb_get_atom_name_name(reply.pointer),
            count: Int(xcb_get_atom_name_name_length(reply.pointer))
        )
        return unsafe String(decoding: bytes, as: UTF8.self)
    }

    /// The bytes of a window's property, at most 64 KiB; empty if it has none.
    func property(_ property: xcb_atom_t, of window: xcb_window_t) throws(XFailure) -> [UInt8] {
        let any = UInt32(XCB_GET_PROPERTY_TYPE_ANY.rawValue)
        let reply = try reply(
            unsafe xcb_get_property(handle, 0, window, property, any, 0, 16_384).sequence,
            as: xcb_get_property_reply_t.self
        )
        let bytes = unsafe UnsafeRawBufferPointer(
            start: xcb_get_property_value(reply.pointer),
            count: Int(xcb_get_property_value_length(reply.pointer))
        )
        return unsafe Array(bytes)
    }

    /// The windows directly inside `window`, from the lowest to the highest, and the window that it is in.
    func tree(of window: xcb_window_t) throws(XFailure) -> (children: [xcb_window_t], parent: xcb_window_t) {
        let reply = try reply(
            unsafe xcb_query_tree(handle, window).sequence,
            as: xcb_query_tree_reply_t.self
        )
        let children = unsafe UnsafeBufferPointer(
            start: xcb_query_tree_children(reply.pointer),
            count: Int(xcb_query_tree_children_length(reply.pointer))
        )
        return (unsafe Array(children), reply.value.parent)
    }

    /// A window's place in its parent, its size and border.
    func geometry(of drawable: xcb_drawable_t) throws(XFailure) -> xcb_get_geometry_reply_t {
        try reply(
            unsafe xcb_get_geometry(handle, drawable).sequence,
            as: xcb_get_geometry_reply_t.self
        ).value
    }

    /// A window's visual, and whether it is shown.
    func attributes(of window: xcb_window_t) throws(XFailure) -> xcb_get_window_attributes_reply_t {
        try reply(
            unsafe xcb_get_window_attributes(handle, window).sequence,
            as: xcb_get_window_attributes_reply_t.self
        ).value
    }

    /// The place on the screen of a window's upper left pixel inside its border.
    func place(of window: xcb_window_t) throws(XFailure) -> PixelPlace {
        let place = try reply(
            unsafe xcb_translate_coordinates(handle, window, root, 0, 0).sequence,
            as: xcb_translate_coordinates_reply_t.self
        ).value
        return PixelPlace(column: Int(place.dst_x), row: Int(place.dst_y))
    }
}
