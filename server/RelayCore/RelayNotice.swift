import RoomProtocol

/// An event for the operator's log.
package enum RelayNotice: Sendable {
    case joined(identity: String, room: String, client: String?)
    /// A participant left; `counts` are those of all that it subscribed to. They are kept apart, because each effect of
    /// the relay has room for the largest notice.
    indirect case left(identity: String, room: String, counts: PacketCounts)
    case published(track: String, identity: String, room: String)
    case unpublished(track: String, identity: String, room: String)
    /// A connection was refused, or ended for a fault of its peer; `identity` is known once the peer has joined.
    case failed(identity: String?, reason: String)
    /// The memory for packets was used up, and `tracks` tracks lost all their stored packets.
    case memoryUsedUp(tracks: Int)
}

extension RelayNotice: CustomStringConvertible {
    /// The notice as a line of a log.
    ///
    /// Text from peers is cut to the greatest length of a name, and its unprintable characters are escaped.
    package var description: String {
        switch self {
        case .joined(let identity, let room, let client):
            "\(quoted(identity)) joined \(quoted(room))" + (client.map { " with \(quoted($0))" } ?? "")
        case .left(let identity, let room, let counts):
            "\(quoted(identity)) left \(quoted(room))" + (counts.received == 0 ? "" : "; it was sent \(counts)")
        case .published(let track, let identity, let room):
            "\(quoted(identity)) published \(quoted(track)) in \(quoted(room))"
        case .unpublished(let track, let identity, let room):
            "\(quoted(identity)) withdrew \(quoted(track)) in \(quoted(room))"
        case .failed(let identity, let reason):
            // The reason may quote what the peer sent.
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

/// The beginning of `text`, at most `count` bytes long, with characters escaped that a log line would not show as they
/// are.
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

/// Whether a character is visible as itself in a line.
///
/// Controls, changes of direction, line ends, invisible spaces and combining characters are not.
private func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: false
    case .nonspacingMark, .enclosingMark: false
    case .spaceSeparator: scalar == " "
    default: true
    }
}
