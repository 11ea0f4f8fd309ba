/// A participant's description for others, encoded in JSON once for all messages and receivers.
package struct ParticipantSnapshot: Hashable, Sendable {
    /// The JSON object of the field `participant`.
    package let json: String

    /// Encodes the description of `participant`.
    package init(_ participant: ParticipantInfo) {
        let key = "\"participant\":"
        let text = ServerMessage.participantConnected(ParticipantConnected(participant: participant)).text
        // The fields come in alphabetical order, so the participant is the text before the type.
        let end = ",\"type\":\"\(ParticipantConnected.type)\"}"
        precondition(text.hasPrefix("{" + key) && text.hasSuffix(end), "\(text)")
        json = String(text.utf8.dropFirst(key.utf8.count + 1).dropLast(end.utf8.count)) ?? ""
    }

    /// The message `participantConnected` about the participant.
    package var connectedText: String {
        "{\"participant\":\(json),\"type\":\"\(ParticipantConnected.type)\"}"
    }
}

extension Joined {
    /// The message with the participants of `snapshots` in place of its own, as many as fit into `limit` bytes.
    ///
    /// - Returns: The text, and how many participants fit. If some do not, the text says that more follow.
    package func text(with snapshots: [ParticipantSnapshot], limit: Int) -> (text: String, count: Int) {
        let list = "\"participants\":[]"
        var empty = self
        empty.participants = []
        empty.moreParticipants = true
        let longer = ServerMessage.joined(empty).text
        var room = limit - longer.utf8.count
        var count = 0
        for snapshot in snapshots {
            // One for the comma.
            room -= snapshot.json.utf8.count + 1
            guard room >= 0 else { break }
            count += 1
        }
        empty.moreParticipants = nil
        let text = count < snapshots.count ? longer : ServerMessage.joined(empty).text
        // Inside a JSON string a quotation mark always follows a backslash, so this can only be the field.
        guard let place = text.firstRange(of: list) else { preconditionFailure("no participants in \(text)") }
        let members = snapshots[..<count].map(\.json).joined(separator: ",")
        return ("\(text[..<place.lowerBound])\"participants\":[\(members)]\(text[place.upperBound...])", count)
    }
}
