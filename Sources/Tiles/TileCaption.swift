/// The words over a picture: who and what it shows, and how fresh it is.
package struct TileCaption: Hashable, Sendable {
    /// What a piece of text is, which decides its colour.
    package enum Role: Hashable, Sendable {
        case participant, track, figures, warning
    }

    /// A piece of text at a place.
    package struct Piece: Hashable, Sendable {
        /// The text, in which each character takes a column.
        package var text: String
        /// What it is.
        package var role: Role
        /// The column at which it begins, from 0.
        package var column: Int
        /// The line, from 0.
        package var line: Int

        /// A piece of the given text, role and place.
        package init(text: String, role: Role, column: Int, line: Int) {
            (self.text, self.role, self.column, self.line) = (text, role, column, line)
        }
    }

    /// The participant's identity.
    package var participant: String
    /// The track's name.
    package var track: String
    /// The picture's size, rate and age, the most important last.
    package var figures: [String]
    /// What is wrong with the track, in place of the figures; `nil` if nothing is.
    package var warning: String?

    /// A caption of the given words.
    package init(participant: String, track: String, figures: [String] = [], warning: String? = nil) {
        self.participant = participant
        self.track = track
        self.figures = figures
        self.warning = warning
    }

    /// Sets the caption in lines of `columns` characters.
    ///
    /// The names are on the left, and the figures on the right of the same line if both fit, otherwise below. The first
    /// figures are left out where all are too long for a line. What is too long nevertheless ends with "…".
    package func set(columns: Int) -> [Piece] {
        guard columns > 0 else { return [] }
        let right = Self.cut(warning ?? figures(columns: columns), to: columns)
        let names = participant.count + 1 + track.count
        let isOneLine = right.isEmpty || names + 2 + right.count <= columns
        var pieces = [Piece(text: Self.cut(participant, to: columns), role: .participant, column: 0, line: 0)]
        let left = columns - participant.count - 1
        // A track's name of fewer characters says nothing.
        if !track.isEmpty, left >= min(3, track.count) {
            let name = Self.cut(track, to: left)
            pieces.append(Piece(text: name, role: .track, column: participant.count + 1, line: 0))
        }
        if !right.isEmpty {
            let column = isOneLine ? columns - right.count : 0
            let role = warning == nil ? Role.figures : .warning
            pieces.append(Piece(text: right, role: role, column: column, line: isOneLine ? 0 : 1))
        }
        return pieces
    }

    private func figures(columns: Int) -> String {
        let choices = figures.indices.map { figures[$0...].joined(separator: " · ") }
        return choices.first { $0.count <= columns } ?? choices.last ?? ""
    }

    private static func cut(_ text: String, to columns: Int) -> String {
        text.count <= columns ? text : text.prefix(columns - 1) + "…"
    }
}

extension TileCaption {
    /// How large letters are on a tile of the given width: each pixel of the font becomes a square of so many.
    package static func scale(forWidth width: Int) -> Int {
        switch width {
        case ..<130: 1
        case ..<640: 2
        default: 3
        }
    }
}
