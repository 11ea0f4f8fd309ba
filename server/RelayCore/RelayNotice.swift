import RoomProtocol

/// Something that whoever runs a server wants to read in its log.
package enum RelayNotice: Hashable, Sendable {
    case joined(identity: String, room: String, client: String?)
    case left(identity: String, room: String)
    case published(track: String, identity: String, room: String)
    case unpublished(track: String, identity: String, room: String)
    /// A connection was ended for a fault of its peer, or refused; `identity` once it had joined.
    case failed(identity: String?, reason: String)
    /// The memory for packets was used up, and `tracks` lost all that was kept of them.
    case memoryUsedUp(tracks: Int)
}

extension RelayNotice: CustomStringConvertible {
    /// The notice as a line of a log.
    ///
    /// What comes from peers is cut at the bytes that a name may have, and what is not printable in it is escaped.
    package var description: String {
        switch self {
        case .joined(let identity, let room, let client):
            "\(quoted(identity)) joined \(quoted(room))" + (client.map { " with \(quoted($0))" } ?? "")
        case .left(let identity, let room): "\(quoted(identity)) left \(quoted(room))"
        case .published(let track, let identity, let room):
            "\(quoted(identity)) published \(quoted(track)) in \(quoted(room))"
        case .unpublished(let track, let identity, let room):
            "\(quoted(identity)) withdrew \(quoted(track)) in \(quoted(room))"
        case .failed(let identity, let reason):
            // The reason may cite what the peer sent.
            "ended \(identity.map { "the session of \(quoted($0))" } ?? "a connection"): "
                + printable(reason, bytes: 4 * WireFormat.maximumNameBytes)
        case .memoryUsedUp(let tracks):
            "the memory for packets was used up; \(tracks) tracks were cut back to their next keyframe"
        }
    }
}

/// A peer's text between quotation marks, bounded and printable.
private func quoted(_ text: String) -> String {
    "\"" + printable(text, bytes: WireFormat.maximumNameBytes, escapesQuotes: true) + "\""
}

/// The beginning of `text`, of at most `count` bytes, with escapes for what would not be seen as itself in a line.
private func printable(_ text: String, bytes count: Int, escapesQuotes: Bool = false) -> String {
    var result = ""
    for scalar in text.prefix(utf8Bytes: count).unicodeScalars {
        let isQuote = scalar == "\"" || scalar == "\\"
        if isPrintable(scalar) && !(isQuote && escapesQuotes) {
            result.unicodeScalars.append(scalar)
        } else if isQuote {
            result += "\\\(scalar)"
        } else {
            result += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
        }
    }
    return text.utf8.count > count ? result + "…" : result
}

/// Whether a character stands for itself: no control, no change of direction, no line's end, no invisible space, and
/// nothing that is piled onto its neighbour.
private func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: false
    case .nonspacingMark, .enclosingMark: false
    case .spaceSeparator: scalar == " "
    default: true
    }
}
