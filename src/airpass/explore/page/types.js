// Types of messages and of the page's state, for the type checker. There is no code here.

/**
 * @typedef {Object} Scenario  Tables as in a scenario file.
 * @property {Object<string, any>} receiver
 * @property {Object<string, any>} radio
 * @property {Object<string, any>} devices  lists x_m, y_m, ... or a draw: count, seed, x_range_m, ...
 * @property {{normalisation: string}} weights
 * @property {Object<string, any>} [channel]
 *
 * @typedef {Object} Devices
 * @property {number[]} x_m
 * @property {number[]} y_m
 * @property {number[]} z_m
 * @property {number[]} gain
 * @property {number[]} samples
 * @property {number[]} priority
 *
 * @typedef {Object} MethodChoice
 * @property {string} name
 * @property {Object<string, any>} options
 *
 * @typedef {Object} State  What a link restores, and what undo goes back to.
 * @property {Scenario} scenario
 * @property {number} seed  of searches
 * @property {number[][] | null} layout_m  antenna positions, M lists of N; null for even spacing
 * @property {MethodChoice | null} array  an array without waveguides that takes the place of the layout
 * @property {{method: MethodChoice, beam: {re: any[], im: any[]}, seed: number, seconds: number,
 *   status: string} | null} found  of a search
 *
 * @typedef {Object} Room  What follows from the scenario, for drawing.
 * @property {number[]} waveguide_y_m
 * @property {number[]} height_m
 * @property {number[]} length_m
 * @property {number[]} feed_x_m
 * @property {number} min_gap_m
 * @property {number} segments
 * @property {number[][] | null} candidates_m  places where antennas can be, by waveguide; null if anywhere
 * @property {{x_m: number, y_m: number, radius_m: number, height_m: number}[]} obstacles
 * @property {boolean} devices_move  false if channels were given for these devices only
 * @property {boolean} has_factors  whether links may be blocked or faded
 * @property {string[]} channel  what differs from the paper's channel
 *
 * @typedef {Object} Answer
 * @property {"live" | "design"} source
 * @property {MethodChoice} method
 * @property {number[][] | null} layout_m
 * @property {number[][] | null} array_m  [x, y, z] of the antennas of an array
 * @property {number[]} scores
 * @property {boolean[]} selected
 * @property {number[]} weights
 * @property {number[]} transmit_power  over P0
 * @property {number} selected_count
 * @property {number | null} weakest_score
 * @property {number | null} strongest_score
 * @property {number | null} mse
 * @property {number} mse_threshold
 * @property {number | null} sdr_db
 * @property {number} seconds
 * @property {string} status
 * @property {string} radio  short description, such as "10 dB"
 * @property {number} snr_db
 * @property {number} carrier_ghz
 * @property {number} wavelength_m
 * @property {Devices} devices
 * @property {Room} room
 *
 * @typedef {Object} Step
 * @property {number} iteration
 * @property {number} selected_count
 * @property {number | null} weakest_score
 * @property {number} seconds
 * @property {boolean} best
 * @property {string} phase
 * @property {number[][] | null} layout_m
 *
 * @typedef {Object} Look
 * @property {string} name
 * @property {string} colour
 * @property {string} dash  "-", "--", "-." or ":"
 * @property {string} marker
 * @property {boolean} filled
 * @property {number} width
 *
 * @typedef {Object} MethodInfo
 * @property {string} name
 * @property {string} summary
 * @property {boolean} array  whether it is an array without waveguides
 * @property {{name: string, value: any, kind: string, choices: string[] | null}[]} options
 *
 * @typedef {Object} Hello
 * @property {string} version
 * @property {string} title  name of what was opened
 * @property {string} start  differs between starts of the server
 * @property {State} state
 * @property {MethodInfo[]} methods
 * @property {Object<string, Look>} looks
 * @property {Object<string, number>} limits
 * @property {string[]} presets
 * @property {boolean} study  whether a study was opened
 * @property {boolean} book  whether a book was opened
 *
 * @typedef {Object} Pin
 * @property {number} id
 * @property {string} label
 * @property {State} state
 * @property {Answer} answer
 *
 * @typedef {Object} Turn  One turn of a book.
 * @property {Answer} answer
 * @property {number[]} shares  part of its weight that each device sends in this turn
 * @property {State} state  antennas and beam of the turn, with whole weights
 *
 * @typedef {Object} Series
 * @property {string} label
 * @property {Look} look
 * @property {number[]} x
 * @property {(number | null)[]} y
 * @property {(number | null)[]} [half]  half the width of confidence intervals
 * @property {number[]} [count]  numbers of trials
 * @property {string} [scale]  "y" or "right"
 */

export {};
