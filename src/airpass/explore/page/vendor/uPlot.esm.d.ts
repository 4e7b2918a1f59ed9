// The chart library without its types: charts.js is its only user.
declare const uPlot: any;
export default uPlot;
